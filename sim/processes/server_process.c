#include "processes/server_process.h"

#include "app/commands/aggregate_command.h"
#include "app/commands/ledger_command.h"
#include "app/serve_options.h"
#include "app/server.h"
#include "base/container.h"
#include "disk/disk.h"
#include "world/trace.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void on_server_restart(struct event *event)
{
    server_node_start(CONTAINER_OF(event, struct server_node, restart));
}

void server_node_init(struct server_node *node, const char *name, struct machine *machine,
                      const char *command)
{
    *node = (struct server_node){.machine = machine, .restart.run = on_server_restart};
    snprintf(node->name, sizeof(node->name), "%s", name);
    server_node_add(node, "%s", command);
}

void server_node_add(struct server_node *node, const char *format, ...)
{
    va_list args;
    assert(node->argc < SERVER_ARGUMENTS_MAX);
    va_start(args, format);
    vsnprintf(node->arguments[node->argc], SERVER_ARGUMENT_BYTES, format, args);
    va_end(args);
    node->argc++;
}

static int run_server(void *arg)
{
    struct server_node *node = arg;
    for (int i = 0; i < node->argc; i++)
        node->argv[i] = node->arguments[i];
    node->argv[node->argc] = NULL;
    if (strcmp(node->argv[0], "ledger") == 0)
        return ledger_command(node->argc, node->argv);
    if (strcmp(node->argv[0], "aggregate") == 0)
        return aggregate_command(node->argc, node->argv);
    return serve_options_run(node->argc, node->argv, server_run);
}

static void on_server_ended(struct process *process, void *arg)
{
    struct server_node *node = arg;
    trace_line("%s ended with status %d", node->name, process->status);
    disk_release(process, false);
    node->process = NULL;
    node->on_ended(node, process);
    if (process->status != 0)
        kernel_set_event(&node->restart, SERVER_RESTART_US);
}

void server_node_start(struct server_node *node)
{
    assert(!node->process);
    event_cancel(kernel_events(), &node->restart);
    node->machine->is_off = false;
    node->is_draining = false;
    node->process = process_start(node->machine, node->name, run_server, node);
    node->process->on_end = on_server_ended;
    node->process->on_end_arg = node;
}

void server_node_drain(struct server_node *node)
{
    if (!node->process)
        return;
    node->is_draining = true;
    process_signal(node->process, SIGTERM);
}

static void on_server_crashed(struct process *process, void *arg)
{
    const struct server_node *node = arg;
    disk_release(process, node->machine->is_off);
}

void server_node_crash(struct server_node *node, bool lost_power)
{
    if (!node->process)
        return;
    node->machine->is_off = lost_power;
    node->process->on_end = on_server_crashed;
    process_crash(&node->process);
}
