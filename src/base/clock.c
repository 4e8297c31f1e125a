#include "base/clock.h"

#include <time.h>

static int64_t read_clock_ms(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void clock_advance(struct clock *clock)
{
    clock->now_ms = read_clock_ms(CLOCK_MONOTONIC);
    clock->wall_ms = read_clock_ms(CLOCK_REALTIME);
}

int64_t clock_microseconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
