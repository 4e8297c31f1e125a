/*
 * Who lives in the simulated world, and what each has seen: users with contacts, their devices, and their chats. It is
 * what the invariants are checked against, so it belongs to the simulator and survives every crash.
 *
 * Users stand in a circle: each is a contact of the POPULATION_REACH users before and behind, and every
 * POPULATION_CHAT_MEMBERS in a row have a chat.
 */
#ifndef ROLLCALL_SIM_WORLD_POPULATION_H
#define ROLLCALL_SIM_WORLD_POPULATION_H

#include "base/random.h"
#include "base/slice.h"
#include "kernel/kernel.h"

enum {
    POPULATION_REACH = 2,
    POPULATION_CONTACTS = 2 * POPULATION_REACH,
    POPULATION_CHAT_MEMBERS = 5,
    POPULATION_TOKEN_BYTES = 256,
    POPULATION_ID_BYTES = 32,
};

/* What a device was last told about a contact. */
struct told {
    bool is_known;
    bool is_online;
    int64_t version;
    int64_t at_us;
};

struct user {
    char name[POPULATION_ID_BYTES];
    char token[POPULATION_TOKEN_BYTES];
    size_t contacts[POPULATION_CONTACTS];
    size_t contact_count;
    struct chat *chat;
    unsigned devices_connected;
    int64_t changed_us; /* when a device of it last connected, or lost its connection */
};

struct chat {
    char id[POPULATION_ID_BYTES];
    uint64_t *ids; /* by sequence - 1: a hash of the message; 0: not seen yet */
    bool *acknowledged;
    size_t capacity;
    int64_t last_sequence; /* the highest acknowledged or delivered */
};

struct rollcall;

struct device {
    struct user *user;
    char name[POPULATION_ID_BYTES];
    struct machine *machine;
    struct process *process; /* NULL: it does not run */
    struct rollcall *client; /* in the process's memory */
    struct random random;
    struct event return_event; /* starts it again */
    bool is_connected;
    bool stays_away; /* until the end of the run */
    int64_t changed_us;
    int64_t next_action_us;
    int64_t last_sequence; /* of its user's chat: what the application has stored */
    unsigned sent_count;
    unsigned unanswered_count;
    unsigned incarnation;
    struct told told[POPULATION_CONTACTS];
};

struct population {
    struct user *users;
    size_t user_count;
    struct device *devices;
    size_t device_count;
    struct chat *chats;
    size_t chat_count;
};

/* One user in ten has two devices. */
void population_make(struct population *population, size_t users, struct slice token_secret);
void population_free(struct population *population);

/* Returns the place of a user in the other's list of contacts; -1: it is none. */
int population_find_contact(const struct population *population, const struct user *user,
                            const char *name);

/* The device has a connection from now on, or has lost it. */
void device_set_connected(struct device *device, bool connected);

#endif
