/*
 * Two processes with a hub of peer links each, on the loopback and in real time. They are the state of a
 * cmocka test; set-up opens the first one. Each records the events it receives. One thread runs both loops.
 */
#ifndef ROLLCALL_TESTS_PEER_PROCESSES_H
#define ROLLCALL_TESTS_PEER_PROCESSES_H

#include "bus/fleet/peer_hub.h"
#include "support/worker_loop.h"

enum {
    PEER_PROCESSES_SOON_TURNS = 30000,
    PEER_PROCESSES_TURN_MS = 1,
    PEER_PROCESSES_QUIET_TURNS = 100,
};

#define PEER_PROCESS_SECRET "an open secret of this test"

struct peer_process {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct peer_hub *hub;
    char address[32];
    char received[512]; /* received events: "topic=payload;" for each */
    size_t count;
    size_t bytes;
    bool open;
};

struct peer_processes {
    struct peer_process at[2];
};

#define PEER_PROCESSES_TEST(test)                                                                  \
    cmocka_unit_test_setup_teardown(test, peer_processes_set_up, peer_processes_tear_down)

int peer_processes_set_up(void **state);
int peer_processes_tear_down(void **state);

/* Opens a process whose hub listens at `listen`. Closing does nothing when it is not open. */
void peer_process_open(struct peer_process *process, const char *name, const char *secret,
                       const char *listen);
void peer_process_close(struct peer_process *process);

/* Opens the second process and links it with the first. */
void peer_processes_join(struct peer_processes *processes);

void peer_processes_turn(struct peer_processes *processes, int times);

/* Run the loops until the hubs have this many open links; until exactly these events were received, and no others
 * follow. The record of received events is then cleared. */
void peer_processes_await_links(struct peer_processes *processes, size_t first, size_t second);
void peer_processes_await_received(struct peer_processes *processes, size_t index,
                                   const char *expected);

void peer_process_send(struct peer_process *process, const char *topic, const char *payload);
int64_t peer_process_metric(const struct peer_process *process, enum metric metric);

#endif
