/*
 * A command for operators that a running server executes on its ledger, or a program of its own when none runs.
 *
 *   rollcall key … ──► the control socket of a running server (control_socket.h) ──┐
 *               └────► a blocking ledger, when no server runs ─────────────────────┴──► one function of the table
 *
 * A command gets its arguments, works on the ledger, and completes with an exit status and texts for standard output and
 * standard error, exactly once. To add one: a row in control_call.c.
 */
#ifndef ROLLCALL_APP_CONTROL_CONTROL_CALL_H
#define ROLLCALL_APP_CONTROL_CONTROL_CALL_H

#include "base/random.h"
#include "ledger/ledger.h"

/* The texts are borrowed for the call. */
typedef void (*control_done)(void *arg, int exit_status, struct slice output, struct slice error);

/* The slices are borrowed until the command's function returns; ledger and random until it completes. */
struct control_call {
    struct ledger_client *ledger;
    struct random *random;
    const struct slice *arguments; /* the command's name first */
    size_t count;
    control_done done;
    void *arg;
};

enum { CONTROL_ARGUMENTS_MAX = 16 };

/* Runs the command that the first argument names. `done` runs exactly once, possibly before this returns. */
void control_call_run(const struct control_call *call);

/* Completes with a text for standard error. */
void control_call_fail(const struct control_call *call, const char *text);

#endif
