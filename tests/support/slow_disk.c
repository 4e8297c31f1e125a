/*
 * Simulates a disk that does not answer, for a real server: a library for LD_PRELOAD in which fsync and
 * fdatasync wait as long as the file $SLOW_DISK exists, at most SLOW_SECONDS_MAX.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_SECONDS_MAX = 60, CHECKS_PER_SECOND = 50 };

int fsync(int fd);
int fdatasync(int fd);

static void wait_while_slow(void)
{
    const char *path = getenv("SLOW_DISK");
    struct timespec pause = {.tv_nsec = 1000000000 / CHECKS_PER_SECOND};
    for (int i = 0; path && access(path, F_OK) == 0 && i < SLOW_SECONDS_MAX * CHECKS_PER_SECOND;
         i++)
        nanosleep(&pause, NULL);
}

/* dlsym() returns functions as void *, which ISO C does not convert to a function pointer. */
static int real_sync(const char *name, int fd)
{
    union {
        void *object;
        int (*function)(int fd);
    } next = {.object = dlsym(RTLD_NEXT, name)};
    return next.function ? next.function(fd) : -1;
}

int fsync(int fd)
{
    wait_while_slow();
    return real_sync("fsync", fd);
}

int fdatasync(int fd)
{
    wait_while_slow();
    return real_sync("fdatasync", fd);
}
