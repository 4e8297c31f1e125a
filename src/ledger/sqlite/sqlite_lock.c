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

static void describe_lock_holder(int lock, const char *name, char *error, size_t error_bytes)
{
    char holder[HOLDER_BYTES_MAX + 1] = "";
    ssize_t len = pread(lock, holder, HOLDER_BYTES_MAX, 0);
    holder[len > 0 ? len : 0] = '\0';
    holder[strcspn(holder, "\n")] = '\0';
    snprintf(error, error_bytes, "in use by %s (it holds %s)",
             holder[0] ? holder : "another process", name);
}

int sqlite_lock_take(const char *path, char *error, size_t error_bytes)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof(name), "%s.lock", path) >= (int)sizeof(name)) {
        snprintf(error, error_bytes, "the path is too long");
        return -1;
    }
    int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock < 0) {
        snprintf(error, error_bytes, "cannot open %s: %s", name, strerror(errno));
        return -1;
    }
    if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
        describe_lock_holder(lock, name, error, error_bytes);
        close(lock);
        return -1;
    }
    char holder[HOLDER_BYTES_MAX];
    int len = snprintf(holder, sizeof(holder), "process %ld\n", (long)getpid());
    bool written = ftruncate(lock, 0) == 0 && pwrite(lock, holder, (size_t)len, 0) == len;
    (void)written; /* if the disk is full, the lock holds without the holder's name */
    return lock;
}

void sqlite_lock_release(int *lock)
{
    if (*lock >= 0)
        close(*lock);
    *lock = -1;
}
