/*
 * The frame of a process without clients of its own (`rollcall ledger`, `fanout`, `aggregate`): a loop on the main thread
 * with its streams, the signals that end the process, and the pages for operators.
 *
 *   init() ──► serve_pages() ──► run() ──SIGTERM, SIGINT──► drain_pages() ──► end_pages() ──► free()
 *
 * A second signal ends the process at once. One thread.
 */
#ifndef ROLLCALL_APP_COMMANDS_SIDE_PROCESS_H
#define ROLLCALL_APP_COMMANDS_SIDE_PROCESS_H

#include "app/commands/process_pages.h"
#include "base/random.h"
#include "config/config.h"
#include "net/loop.h"
#include "net/stream.h"

enum { SIDE_PROCESS_EXIT_FAILED = 1 };

struct side_process {
    const char *command; /* "ledger": for messages */
    const struct config *config;
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct process_pages *pages; /* NULL: not configured */
    struct loop_source signals;  /* a signal descriptor; -1 if there is none */
    bool is_draining;            /* a signal has asked it to end */
};

/* Prints why the process cannot start, and returns false. */
bool side_process_fail(const struct side_process *process, const char *what, const char *why);

/* Makes the loop and blocks the signals: call it before threads are created, since they inherit the mask. On failure prints
 * why and returns false; side_process_free() frees what there is. */
bool side_process_init(struct side_process *process, const char *command,
                       const struct config *config);

/* Serves the pages at `address`, the value of `setting`; does nothing if it is empty. `arg` is given to both functions. On
 * failure prints why and returns false. */
bool side_process_serve_pages(struct side_process *process, const char *setting,
                              const char *address, const char *(*unready)(void *arg),
                              void (*write_metrics)(void *arg, struct buffer *out), void *arg);

/* Prints one address of the process with the port that it got; `listen` is known to be valid. */
void side_process_print_address(const char *what, const char *listen, unsigned port);

/* Turns the loop until a signal asks the process to end. */
void side_process_run(struct side_process *process);

/* /readyz answers 503 from now on. */
void side_process_drain_pages(struct side_process *process);

/* Closes the pages; turns the loop meanwhile. */
void side_process_end_pages(struct side_process *process);

/* Frees the parts that exist. */
void side_process_free(struct side_process *process);

#endif
