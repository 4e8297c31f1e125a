/*
 * The five things every server is asked to do. Each job opens its clients, brings the server to a
 * steady state, measures, prints one line of JSON on standard output and leaves.
 *
 *   idle     opens `clients` connections and holds them: resident bytes per connection
 *   echo     every client keeps one heartbeat in flight: processor time per message
 *   fanout   one user changes `changes` times under the eyes of `clients`: time per delivery
 *   connect  opens `clients` connections as fast as they are served: time per connect
 *   flat     `rate` heartbeats a second, spread over all `clients`: time per message
 */
#ifndef ROLLCALL_BENCH_JOBS_H
#define ROLLCALL_BENCH_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "dialect.h"

struct job_settings {
    const struct dialect *dialect;
    uint16_t server_port;
    pid_t server_process;
    const char **tokens; /* `clients` of them, then the star's */
    size_t clients;
    bool active;       /* heartbeats say that the user is there */
    uint64_t messages; /* echo: stop after so many instead of by the clock; 0 = by the clock */
    uint64_t changes;
    uint64_t rate;
    double seconds;
};

struct job_kind {
    const char *name;
    void (*run)(const struct job_settings *settings);
};

/* NULL if there is no job of that name. */
const struct job_kind *job_find(const char *name);

#endif
