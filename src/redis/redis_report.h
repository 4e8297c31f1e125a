/*
 * What the log said last about each Redis server. All connections of a process share one report, so that an outage is one
 * line in the log when it begins and one when it ends, however many connections see it.
 *
 * Any thread may use it. Two servers may share a place; then one more or one fewer line is logged.
 */
#ifndef ROLLCALL_REDIS_REDIS_REPORT_H
#define ROLLCALL_REDIS_REDIS_REPORT_H

#include "redis/protocol/redis_problem.h"
#include "redis/protocol/redis_url.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { REDIS_REPORT_PLACES = 64 };

/* Zeroed: every server is taken to be fine. */
struct redis_report {
    atomic_uint problems[REDIS_REPORT_PLACES]; /* enum redis_problem */
};

/* Notes a server's problem, or that it is fine. Returns whether that is news. */
bool redis_report_note(struct redis_report *report, const struct redis_address *server,
                       enum redis_problem problem);

#endif
