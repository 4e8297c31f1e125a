/*
 * Who lives in the simulated world, and what each has seen: users with contacts, their devices, and their chats. It is
 * what the invariants are checked against, so it belongs to the simulator and survives every crash.
 *
 * Users stand in a circle: each is a contact of the POPULATION_REACH users before and behind, and every
 * POPULATION_CHAT_MEMBERS in a row have a chat. Every POPULATION_HIDING_EVERY-th hides from all, and every
 * POPULATION_BLOCKING_EVERY-th blocks the next one; the others change their settings as time goes by.
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
    POPULATION_HIDING_EVERY = 9,
    POPULATION_BLOCKING_EVERY = 13,
    POPULATION_TOKEN_BYTES = 256,
    POPULATION_ID_BYTES = 32,
    POPULATION_CALL_BYTES = 48,
    POPULATION_REQUESTS_MAX = 8,
};

/* What a device was last told about a contact. */
struct told {
    bool is_known;
    bool is_online; /* or away */
    bool is_away;
    bool in_call;
    int64_t version;
    int64_t pushed_version; /* of the last event on this connection, not counting snapshots */
    int64_t at_us;
};

/* A change of privacy that the fleet has not confirmed has this time, so that nothing is settled. */
#define POPULATION_PENDING_US INT64_MAX

/* Between a user and a contact, in the place of the contact; both sides have it. */
struct tie {
    bool is_severed; /* one of the two blocks the other, so neither may see the other */
    bool is_blocked_by_us;
    int64_t changed_us; /* 0: as at the beginning */
};

enum call_phase { CALL_NONE, CALL_CALLING, CALL_RINGING, CALL_TALKING, CALL_ENDING };

/* What a device does about a call that comes in. */
enum call_answer { ANSWER_NOTHING, ANSWER_ACCEPT, ANSWER_REJECT };

/* A command with an id, whose answer a device awaits. */
struct request {
    unsigned id; /* 0: none */
    int64_t asked_us;
};

struct user {
    char name[POPULATION_ID_BYTES];
    char token[POPULATION_TOKEN_BYTES];
    size_t contacts[POPULATION_CONTACTS];
    size_t contact_count;
    struct tie ties[POPULATION_CONTACTS];
    bool keeps_settings; /* hides, blocks or is blocked from the beginning to the end */
    bool hides;          /* from everybody */
    int64_t hides_us;    /* since when it hides, or does not; 0: as at the beginning */
    struct chat *chat;
    unsigned devices_connected;
    unsigned devices_talking;
    int64_t changed_us; /* when a device of it last connected, or lost its connection */
    int64_t talked_us;  /* when a device of it last began or ended a call */
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
    enum call_phase call;
    enum call_answer answer; /* that it gives after the library's report */
    char call_id[POPULATION_CALL_BYTES];
    unsigned calls_count;
    unsigned requests_count;
    struct request requests[POPULATION_REQUESTS_MAX];
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

/* Returns NULL: there is no such user. */
struct user *population_find_user(const struct population *population, const char *name);

/* Whether presence of `user` may be shown to `viewer`, and since when that is so: 0: from the beginning on. */
bool population_may_see(const struct population *population, const struct user *viewer,
                        const struct user *user, int64_t *since_us);

/* Somebody who is no contact of the user, unless there are too few people. */
const struct user *population_other_person(const struct population *population,
                                           const struct user *user);

/* Both sides of a contact. */
void population_set_tie(struct population *population, struct user *user, size_t contact,
                        struct tie tie);

/* A device begins or ends a call, as far as it knows. */
void device_set_call(struct device *device, enum call_phase phase, const char *call_id);

/* The device has a connection from now on, or has lost it. */
void device_set_connected(struct device *device, bool connected);

#endif
