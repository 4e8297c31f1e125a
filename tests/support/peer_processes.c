#include "support/peer_processes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void on_process_event(void *arg, struct slice topic, struct slice payload)
{
    struct peer_process *process = arg;
    size_t len = strlen(process->received);
    process->count++;
    process->bytes += payload.len;
    snprintf(process->received + len, sizeof(process->received) - len, "%.*s=%.*s;",
             SLICE_FORMAT(topic), payload.len < 64 ? (int)payload.len : 0, payload.data);
}

void peer_process_open(struct peer_process *process, const char *name, const char *secret,
                       const char *listen)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    memset(process, 0, sizeof(*process));
    worker_loop_open(&process->worker);
    assert_true(mailbox_init(&process->mailbox, &process->worker.loop, MAILBOX_MAIL_MAX, process));
    process->hub = peer_hub_make(&(struct peer_hub_options){.loop = &process->worker.loop,
                                                            .streams = &process->worker.streams,
                                                            .random = &process->worker.random,
                                                            .metrics = &process->worker.metrics,
                                                            .mailbox = &process->mailbox,
                                                            .name = slice_of(name),
                                                            .secret = slice_of(secret),
                                                            .on_event = on_process_event,
                                                            .arg = process});
    assert_non_null(process->hub);
    assert_true(peer_hub_listen(process->hub, listen, error));
    snprintf(process->address, sizeof(process->address), "127.0.0.1:%u",
             peer_hub_port(process->hub));
    process->open = true;
}

void peer_process_close(struct peer_process *process)
{
    if (!process->open)
        return;
    mailbox_free(&process->mailbox);
    peer_hub_free(&process->hub);
    worker_loop_close(&process->worker);
    process->open = false;
}

int peer_processes_set_up(void **state)
{
    struct peer_processes *processes = calloc(1, sizeof(*processes));
    peer_process_open(&processes->at[0], "east", PEER_PROCESS_SECRET, "127.0.0.1:0");
    *state = processes;
    return 0;
}

int peer_processes_tear_down(void **state)
{
    struct peer_processes *processes = *state;
    peer_process_close(&processes->at[0]);
    peer_process_close(&processes->at[1]);
    free(processes);
    return 0;
}

void peer_processes_turn(struct peer_processes *processes, int times)
{
    for (int i = 0; i < times; i++)
        for (size_t j = 0; j < 2; j++)
            if (processes->at[j].open)
                loop_turn(&processes->at[j].worker.loop, PEER_PROCESSES_TURN_MS);
}

void peer_processes_await_links(struct peer_processes *processes, size_t first, size_t second)
{
    struct peer_process *at = processes->at;
    for (int i = 0; i < PEER_PROCESSES_SOON_TURNS; i++) {
        if (peer_hub_open_links(at[0].hub) == first &&
            (!at[1].open || peer_hub_open_links(at[1].hub) == second))
            return;
        peer_processes_turn(processes, 1);
    }
    fail_msg("links: %zu and %zu", peer_hub_open_links(at[0].hub),
             at[1].open ? peer_hub_open_links(at[1].hub) : 0);
}

void peer_process_send(struct peer_process *process, const char *topic, const char *payload)
{
    peer_hub_send(process->hub, &process->worker.metrics, slice_of(topic), slice_of(payload));
}

void peer_processes_await_received(struct peer_processes *processes, size_t index,
                                   const char *expected)
{
    struct peer_process *process = &processes->at[index];
    for (int i = 0; strcmp(process->received, expected) != 0 && i < PEER_PROCESSES_SOON_TURNS; i++)
        peer_processes_turn(processes, 1);
    peer_processes_turn(processes, PEER_PROCESSES_QUIET_TURNS);
    assert_string_equal(process->received, expected);
    process->received[0] = '\0';
}

int64_t peer_process_metric(const struct peer_process *process, enum metric metric)
{
    return process->worker.metrics.values[metric];
}

void peer_processes_join(struct peer_processes *processes)
{
    peer_process_open(&processes->at[1], "west", PEER_PROCESS_SECRET, "127.0.0.1:0");
    assert_true(peer_hub_add(processes->at[1].hub, processes->at[0].address));
    peer_processes_await_links(processes, 1, 1);
}
