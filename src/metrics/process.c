#include "metrics/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_FOLDER "/proc/self/fd"

int64_t process_resident_bytes(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t len = read(fd, text, sizeof text - 1);
    close(fd);
    if (len <= 0)
        return -1;
    text[len] = '\0';
    const char *resident = strchr(text, ' '); /* the second number, in pages */
    return resident ? strtoll(resident, NULL, 10) * sysconf(_SC_PAGESIZE) : -1;
}

int64_t process_open_fds(void)
{
    struct stat status;
    if (stat(FD_FOLDER, &status) < 0)
        return -1;
    if (status.st_size > 0)
        return (int64_t)status.st_size;
    DIR *folder = opendir(FD_FOLDER);
    if (!folder)
        return -1;
    int64_t count = 0;
    struct dirent *entry;
    while (count <= PROCESS_FDS_COUNTED_MAX && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    /* One of them is the directory itself. */
    return count <= PROCESS_FDS_COUNTED_MAX ? count - 1 : -1;
}
