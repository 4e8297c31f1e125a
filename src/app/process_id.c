#include "app/process_id.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BOOT_ID_LEN = 36, STAT_BYTES_MAX = 1024, START_TIME_FIELD = 22 };

/* Returns how many bytes were read; -1 with errno set. */
static ssize_t read_process_file(const char *path, char *out, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t len = read(fd, out, max);
    close(fd);
    return len;
}

/* Reads when a process was started, in ticks since the boot, and whether it has ended but nobody has waited for it. The name
 * of the program, in parentheses, may contain anything, so fields are counted from its end. Returns false when the process
 * does not exist, or cannot be read. */
static bool read_start_time(long pid, unsigned long long *ticks, bool *has_ended)
{
    char path[64], text[STAT_BYTES_MAX + 1];
    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    ssize_t len = read_process_file(path, text, STAT_BYTES_MAX);
    if (len <= 0)
        return false;
    text[len] = '\0';
    const char *at = strrchr(text, ')');
    *has_ended = at && (at[2] == 'Z' || at[2] == 'X');
    for (int field = 2; at && field < START_TIME_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at && sscanf(at, " %llu", ticks) == 1;
}

/* Writes "<boot>:<process namespace>:". Returns false where the system does not tell. */
static bool write_process_place(char out[PROCESS_ID_BYTES_MAX])
{
    char boot[BOOT_ID_LEN];
    struct stat space;
    if (read_process_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) != BOOT_ID_LEN ||
        stat("/proc/self/ns/pid", &space) != 0)
        return false;
    snprintf(out, PROCESS_ID_BYTES_MAX, "%.*s:%llu:", BOOT_ID_LEN, boot,
             (unsigned long long)space.st_ino);
    return true;
}

struct slice process_id_write(char out[PROCESS_ID_BYTES_MAX])
{
    unsigned long long ticks;
    bool has_ended;
    if (!write_process_place(out) || !read_start_time(getpid(), &ticks, &has_ended))
        return SLICE_NONE;
    size_t len = strlen(out);
    snprintf(out + len, PROCESS_ID_BYTES_MAX - len, "%ld:%llu", (long)getpid(), ticks);
    return slice_of(out);
}

bool process_id_is_gone(struct slice process)
{
    char place[PROCESS_ID_BYTES_MAX], text[PROCESS_ID_BYTES_MAX], end;
    long pid;
    unsigned long long ticks, found;
    bool has_ended;
    if (process.len >= sizeof(text) || !write_process_place(place) ||
        !slice_starts_with(process, slice_of(place)))
        return false;
    memcpy(text, process.data, process.len);
    text[process.len] = '\0';
    if (sscanf(text + strlen(place), "%ld:%llu%c", &pid, &ticks, &end) != 2 || pid <= 0)
        return false;
    if (read_start_time(pid, &found, &has_ended))
        return has_ended || found != ticks;
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH; /* /proc may hide the processes of others */
}
