/*
 * Simulates a machine whose clock is set while a server runs: a library for LD_PRELOAD that adds to the time of
 * day the number of seconds in the file $CLOCK_JUMP. The monotonic clock is not affected, as on a real machine.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *out);
int gettimeofday(struct timeval *restrict out, void *restrict zone);

static long jump_seconds(void)
{
    const char *path = getenv("CLOCK_JUMP");
    FILE *file = path ? fopen(path, "r") : NULL;
    long seconds = 0;
    if (!file)
        return 0;
    if (fscanf(file, "%ld", &seconds) != 1)
        seconds = 0;
    fclose(file);
    return seconds;
}

/* dlsym() returns functions as void *, which ISO C does not convert to a function pointer. */
static int real_clock_gettime(clockid_t id, struct timespec *out)
{
    union {
        void *object;
        int (*function)(clockid_t id, struct timespec *out);
    } next = {.object = dlsym(RTLD_NEXT, "clock_gettime")};
    return next.function ? next.function(id, out) : -1;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int result = real_clock_gettime(id, out);
    if (result == 0 && id == CLOCK_REALTIME)
        out->tv_sec += jump_seconds();
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}
