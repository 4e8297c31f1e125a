/*
 * A command about a call while it is under way: a copy of its arguments, and the reply that is owed.
 * Every command ends in one of call_command_reply() with free(), or a refusal.
 */
#ifndef ROLLCALL_CALLS_CALL_COMMAND_H
#define ROLLCALL_CALLS_CALL_COMMAND_H

#include "calls/call_plane.h"

/* The arguments' bytes follow the struct. */
struct call_command {
    struct call_plane *plane;
    struct call_device device;
    struct slice to;
    struct slice call_id; /* SLICE_NONE: the call the user is in */
    struct slice data;
    void (*done)(void *arg, const struct call_reply *reply);
    void *arg;
};

/* A copy of `draft`, freed with free(). NULL: the asker was told that memory is short. */
struct call_command *call_command_make(const struct call_command *draft);

/* Gives the reply; the command goes on until it is freed. */
void call_command_reply(const struct call_command *command, const struct call *call);

/* Gives a refusal and frees the command. */
void call_command_refuse(struct call_command *command, enum error_code code, const char *problem);

/* The refusal that fits what the call store answered. */
void call_command_refuse_result(struct call_command *command, const struct call_answer *answer);

/* The refusal of a state, naming it. */
void call_command_refuse_state(struct call_command *command, enum call_state state);

#endif
