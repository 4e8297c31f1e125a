/*
 * A ledger in memory for tests, which answers at once, later, in another order, or not at all.
 *
 * It implements what the presence plane needs (settings, profiles, last seen, contacts, blocks, chats and
 * their members) and answers everything else UNAVAILABLE, or as if there were nothing (`answers_all`). It computes an answer when the request arrives and
 * returns it at once or when the test releases it: a test can change a setting while a read is pending.
 *
 * One thread. The test owns the struct and closes the ledger with ledger_close().
 */
#ifndef ROLLCALL_TESTS_FAKE_LEDGER_H
#define ROLLCALL_TESTS_FAKE_LEDGER_H

#include "ledger/ledger.h"
#include "ledger/ledger_request.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    FAKE_LEDGER_USERS_MAX = 512,
    FAKE_LEDGER_CONTACTS_MAX = 32,
    FAKE_LEDGER_MEMBERS_MAX = 256, /* of all chats together */
};

struct fake_user {
    char id[LEDGER_ID_BYTES_MAX + 1];
    struct ledger_settings settings;
    int64_t last_seen_ms;
    uint64_t presence_version;
};

struct fake_member {
    char chat[LEDGER_ID_BYTES_MAX + 1];
    char user[LEDGER_ID_BYTES_MAX + 1];
};

struct fake_ledger {
    struct ledger ledger;
    struct fake_user users[FAKE_LEDGER_USERS_MAX];
    size_t user_count;
    const char *contacts[FAKE_LEDGER_CONTACTS_MAX][2];
    size_t contact_count;
    const char *blocks[FAKE_LEDGER_CONTACTS_MAX][2]; /* {user, blocked user} */
    size_t block_count;
    struct fake_member members[FAKE_LEDGER_MEMBERS_MAX];
    size_t member_count;
    struct ledger_settings initial; /* of unknown users */
    enum ledger_status failing;     /* not OK: the answer to everything */
    bool answers_all;               /* lists are empty, and changes succeed */
    bool holding;                   /* answers wait for fake_ledger_release…() */
    struct ledger_request *held;    /* oldest first */
    size_t held_count;
    size_t submitted[LEDGER_OPERATION_COUNT]; /* requests, by operation */
};

/* By default every user shows everything to everyone. */
void fake_ledger_init(struct fake_ledger *fake);

void fake_ledger_show(struct fake_ledger *fake, const char *user, enum ledger_visibility presence,
                      enum ledger_visibility last_seen);
void fake_ledger_befriend(struct fake_ledger *fake, const char *a, const char *b);

/* `user` blocks `other`; their contact is not changed. */
void fake_ledger_block(struct fake_ledger *fake, const char *user, const char *other);

/* A chat exists as long as it has members. */
void fake_ledger_join(struct fake_ledger *fake, const char *chat, const char *user);
void fake_ledger_leave(struct fake_ledger *fake, const char *chat, const char *user);

/* Release the oldest, the newest, or all held answers. */
void fake_ledger_release(struct fake_ledger *fake);
void fake_ledger_release_newest(struct fake_ledger *fake);
void fake_ledger_release_all(struct fake_ledger *fake);

#endif
