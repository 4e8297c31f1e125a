#include "cost.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS_PER_SECOND 1000000000ull
#define SYSTEM_TIME_FIELD 15 /* of /proc/PID/stat */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    if (clock_gettime(clock, &time) != 0)
        cost_fail("cannot read the clock of the server; has it ended?");
    return (uint64_t)time.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)time.tv_nsec;
}

uint64_t cost_cpu_ns(pid_t process)
{
    clockid_t clock;
    if (clock_getcpuclockid(process, &clock) != 0)
        cost_fail("there is no process %d", (int)process);
    return clock_ns(clock);
}

/* The second field, the name, is in brackets and may contain spaces, so the fields after it are counted. */
uint64_t cost_system_ns(pid_t process)
{
    char path[64];
    char line[1024] = "";
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    if (file == NULL || fgets(line, sizeof(line), file) == NULL)
        cost_fail("cannot read %s", path);
    fclose(file);
    const char *rest = strrchr(line, ')');
    for (int field = 2; rest != NULL && field < SYSTEM_TIME_FIELD; field++)
        rest = strchr(rest + 1, ' ');
    if (rest == NULL)
        cost_fail("%s has an unexpected format", path);
    uint64_t ticks = strtoull(rest, NULL, 10);
    return ticks * (NANOSECONDS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

uint64_t cost_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t cost_resident_bytes(pid_t process)
{
    char path[64];
    char line[256];
    uint64_t kilobytes = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)process);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        cost_fail("cannot read %s", path);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Rss:", 4) == 0)
            kilobytes = strtoull(line + 4, NULL, 10);
    fclose(file);
    return kilobytes * 1024;
}

void cost_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

void cost_raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}
