/*
 * A disk that does not answer, for a real server: preloaded (LD_PRELOAD), it lets fsync and fdatasync
 * wait as long as the file exists that $SLOW_DISK names, SLOW_SECONDS_MAX at most.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOW_SECONDS_MAX = 60, LOOKS_PER_SECOND = 50 };

int fsync(int fd);
int fdatasync(int fd);

static void wait_while_slow(void)
{
    const char *path = getenv("SLOW_DISK");
    struct timespec pause = {.tv_nsec = 1000000000 / LOOKS_PER_SECOND};
    for (int i = 0; path && access(path, F_OK) == 0 && i < SLOW_SECONDS_MAX * LOOKS_PER_SECOND; i++)
        nanosleep(&pause, NULL);
}

/* dlsym() gives out functions as void *, which ISO C cannot turn into what they are. */
static int call_next(const char *name, int fd)
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
    return call_next("fsync", fd);
}

int fdatasync(int fd)
{
    wait_while_slow();
    return call_next("fdatasync", fd);
}
