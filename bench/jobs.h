/*
 * The five jobs that every server does. Each opens its clients, brings the server to a steady state,
 * measures, prints one line of JSON on standard output and returns.
 *
 *   idle     opens `clients` connections and holds them: resident bytes per connection
 *   echo     every client keeps one heartbeat in flight: processor time per message
 *   fanout   one user changes `changes` times while `clients` watch: time per delivery
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
    bool active;       /* heartbeats report that the user is active */
    uint64_t messages; /* echo: stop after this many; 0: after `seconds` */
    uint64_t changes;
    uint64_t rate;
    double seconds;
};

struct job_kind {
    const char *name;
    void (*run)(const struct job_settings *settings);
};

/* Returns NULL if no job has that name. */
const struct job_kind *job_find(const char *name);

#endif
