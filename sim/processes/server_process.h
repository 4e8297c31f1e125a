/*
 * `rollcall serve`, `rollcall ledger` and `rollcall aggregate` as simulated processes: the program's own commands, with the arguments that an
 * operator would give. Nothing of them is replaced but the system that they call.
 */
#ifndef ROLLCALL_SIM_PROCESSES_SERVER_PROCESS_H
#define ROLLCALL_SIM_PROCESSES_SERVER_PROCESS_H

#include "kernel/kernel.h"

enum { SERVER_ARGUMENTS_MAX = 48, SERVER_ARGUMENT_BYTES = 96, SERVER_RESTART_US = 2000 * 1000 };

struct world;

struct server_node {
    struct machine *machine;
    struct process *process; /* NULL: it does not run */
    char name[KERNEL_NAME_BYTES];
    int argc;
    char *argv[SERVER_ARGUMENTS_MAX + 1];
    char arguments[SERVER_ARGUMENTS_MAX][SERVER_ARGUMENT_BYTES];
    bool is_draining;
    struct event restart; /* by a supervisor, as systemd does, after a failure */
    void (*on_ended)(struct server_node *node, const struct process *process); /* not by a crash */
    struct world *world;
};

/* The first argument is the command. The caller sets `on_ended`. */
void server_node_init(struct server_node *node, const char *name, struct machine *machine,
                      const char *command);
void server_node_add(struct server_node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void server_node_start(struct server_node *node);

/* SIGTERM: it ends in order, some time later. */
void server_node_drain(struct server_node *node);

/* `lost_power`: the machine goes off as well, until the next start. */
void server_node_crash(struct server_node *node, bool lost_power);

#endif
