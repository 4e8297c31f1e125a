#include "ledger/sqlite/sqlite_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { HOLDER_BYTES_MAX = 32 };

int sqlite_lock_take(const char *path, char *error, size_t error_bytes)
{
    char name[PATH_MAX];
    char holder[HOLDER_BYTES_MAX + 1] = "";
    if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name)) {
        snprintf(error, error_bytes, "the path is too long");
        return -1;
    }
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        const char *advice = errno == ENOENT ? "create the folder"
                             : errno == EMFILE || errno == ENFILE
                                 ? "raise the limit on open files"
                                 : "give the user that runs rollcall write access to the folder";
        snprintf(error, error_bytes,
                 "cannot open %s: %s: %s, or name another place with --ledger sqlite:PATH "
                 "(ledger.url)",
                 name, strerror(errno), advice);
        return -1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t read_bytes = pread(lock, holder, HOLDER_BYTES_MAX, 0);
        holder[read_bytes > 0 ? read_bytes : 0] = '\0';
        holder[strcspn(holder, "\n")] = '\0';
        snprintf(error, error_bytes, "in use by %s (it holds %s)",
                 holder[0] ? holder : "another process", name);
        close(lock);
        return -1;
    }
    int len = snprintf(holder, sizeof(holder), "process %ld\n", (long)getpid());
    bool written = ftruncate(lock, 0) == 0 && pwrite(lock, holder, (size_t)len, 0) == len;
    (void)written; /* a full disk: the lock holds without the holder's name */
    return lock;
}

void sqlite_lock_release(int *lock)
{
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
}
