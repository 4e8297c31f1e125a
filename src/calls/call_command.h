/*
 * A pending command about a call: a copy of its arguments, and the reply it owes. Every command ends with
 * call_command_reply() and free(), or with a refusal.
 */
#ifndef ROLLCALL_CALLS_CALL_COMMAND_H
#define ROLLCALL_CALLS_CALL_COMMAND_H

#include "calls/call_plane.h"

/* The arguments' bytes follow the struct. */
struct call_command {
    struct call_plane *plane;
    struct call_device device;
    struct slice to;
    bool callee_hides;    /* a call request: the caller may not see the callee's presence */
    struct slice call_id; /* SLICE_NONE: the call the user is in */
    struct slice data;
    int64_t started_at_ms; /* of a call that waits until its start is recorded */
    bool unheard;          /* the same: the callee does not hear it */
    call_plane_done done;
    void *arg;
};

/* Returns a copy of `draft`, to be freed with free(). NULL: out of memory; the command was refused. */
struct call_command *call_command_make(const struct call_command *draft);

/* Sends the reply; the caller frees the command later. */
void call_command_reply(const struct call_command *command, const struct call *call);

/* Refuses the command and frees it. */
void call_command_refuse(struct call_command *command, enum error_code code, const char *problem);

/* Refuses the command according to the call store's answer. */
void call_command_refuse_result(struct call_command *command, const struct call_answer *answer);

/* Refuses the command because of the call's state. */
void call_command_refuse_state(struct call_command *command, enum call_state state);

#endif
