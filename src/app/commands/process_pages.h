/*
 * The HTTP pages of a process without clients (`rollcall ledger`, `rollcall fanout`): /healthz, /readyz and /metrics,
 * without a token, like those of a gateway.
 *
 *   open ──process_pages_drain()──► not ready ──process_pages_end()──► closing ──► is_ended: may be freed
 *
 * At most PROCESS_PAGES_CONNECTIONS_MAX connections; a further one replaces the one that has been without a
 * request for longest. Runs on the thread of the loop.
 */
#ifndef ROLLCALL_APP_COMMANDS_PROCESS_PAGES_H
#define ROLLCALL_APP_COMMANDS_PROCESS_PAGES_H

#include "base/buffer.h"
#include "config/config.h"
#include "net/listener.h"
#include "net/stream.h"

enum { PROCESS_PAGES_CONNECTIONS_MAX = 64 };

/* Borrowed until the pages are freed. */
struct process_pages_options {
    struct loop *loop;
    struct stream_set *streams;
    const struct config *config;
    /* Returns why the process is not ready; NULL: it is. */
    const char *(*unready)(void *arg);
    /* Appends the metrics in Prometheus' text format. */
    void (*write_metrics)(void *arg, struct buffer *out);
    void *arg;
};

struct process_pages;

/* Listens on `address` (HOST:PORT; port 0: any). On failure returns NULL and explains in `error`. */
struct process_pages *process_pages_open(const struct process_pages_options *options,
                                         const char *address, char error[LISTENER_ERROR_TEXT_MAX]);

uint16_t process_pages_port(const struct process_pages *pages);

/* /readyz answers 503 from now on. */
void process_pages_drain(struct process_pages *pages);

/* Stops listening and closes all connections within one turn of the loop. */
void process_pages_end(struct process_pages *pages);
bool process_pages_is_ended(const struct process_pages *pages);

/* Call it once process_pages_is_ended(), or when no connection was ever accepted. */
void process_pages_free(struct process_pages **pages);

#endif
