/*
 * Two processes ("offices") with a hub of peer links each, on the loopback and in real time. They are the state of a
 * cmocka test; set-up opens the first one. Each records the events it receives. One thread turns both.
 */
#ifndef ROLLCALL_TESTS_PEER_OFFICES_H
#define ROLLCALL_TESTS_PEER_OFFICES_H

#include "bus/fleet/peer_hub.h"
#include "support/worker_loop.h"

enum {
    PEER_OFFICES_SOON_TURNS = 6000,
    PEER_OFFICES_TURN_MS = 1,
    PEER_OFFICES_QUIET_TURNS = 100,
};

#define PEER_OFFICE_SECRET "an open secret of this test"

struct peer_office {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct peer_hub *hub;
    char address[32];
    char heard[512]; /* received events: "topic=payload;" for each */
    size_t count;
    size_t bytes;
    bool open;
};

struct peer_offices {
    struct peer_office at[2];
};

#define PEER_OFFICES_TEST(test)                                                                    \
    cmocka_unit_test_setup_teardown(test, peer_offices_set_up, peer_offices_tear_down)

int peer_offices_set_up(void **state);
int peer_offices_tear_down(void **state);

/* Opens a process whose hub listens at `listen`. Closing does nothing when it is not open. */
void peer_office_open(struct peer_office *office, const char *name, const char *secret,
                      const char *listen);
void peer_office_close(struct peer_office *office);

/* Opens the second process and links it with the first. */
void peer_offices_join(struct peer_offices *offices);

void peer_offices_turn(struct peer_offices *offices, int times);

/* Turn until the hubs have this many open links; until exactly these events were received, and no others follow. The
 * record is then cleared. */
void peer_offices_await_links(struct peer_offices *offices, size_t first, size_t second);
void peer_offices_await_heard(struct peer_offices *offices, size_t index, const char *expected);

void peer_office_send(struct peer_office *office, const char *topic, const char *payload);
int64_t peer_office_metric(const struct peer_office *office, enum metric metric);

#endif
