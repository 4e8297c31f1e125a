#include "redis/redis_report.h"

#include <string.h>

static size_t redis_report_place(const struct redis_address *server)
{
    size_t place = server->port;
    for (const char *at = server->host; *at; at++)
        place = place * 31 + (unsigned char)*at;
    return place % REDIS_REPORT_PLACES;
}

bool redis_report_note(struct redis_report *report, const struct redis_address *server,
                       enum redis_problem problem)
{
    return atomic_exchange(&report->problems[redis_report_place(server)], problem) != problem;
}
