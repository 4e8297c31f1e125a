/*
 * Gathers the messages of each chat: while one transaction of a chat is under way, further messages wait, and the next
 * transaction stores them together (dynamodb_append.h). So two transactions of a process for one chat never meet.
 *
 *   idle ──message──► waiting ──a fiber is free──► running, one batch after the other ──nothing waits──► idle
 *
 * An idle chat is remembered (dynamodb_append_chat.h); of more than DYNAMODB_APPENDS_CHATS_MAX the one that was idle longest is
 * forgotten. When other chats wait for a fiber, a running chat lets them go first after each batch.
 *
 * The messages of one sender to one chat are stored, and given back, in the order in which they were added.
 *
 * Threading: the ledger's own thread. It has fibers of its own, so that other operations never keep messages waiting.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPENDS_H
#define ROLLCALL_LEDGER_DYNAMODB_APPEND_DYNAMODB_APPENDS_H

#include "ledger/dynamodb/client/dynamodb_client.h"

enum {
    DYNAMODB_APPENDS_FIBERS_MAX = 128,
    DYNAMODB_APPENDS_GATHERED_MAX = 1024, /* messages; further ones wait in the ledger's lane */
    DYNAMODB_APPENDS_CHATS_MAX = 4096,
};

/* Receives a request whose outcome is complete. */
typedef void (*dynamodb_append_done)(void *arg, struct ledger_request *request);

struct dynamodb_appends;

/* Returns NULL when out of memory. */
struct dynamodb_appends *dynamodb_appends_make(struct dynamodb_client *client,
                                               dynamodb_append_done on_done, void *arg);

/* No message may be under way. */
void dynamodb_appends_free(struct dynamodb_appends **appends);

bool dynamodb_appends_is_full(const struct dynamodb_appends *appends);

/* Takes a request LEDGER_MESSAGE_APPEND. Called on the loop. */
void dynamodb_appends_add(struct dynamodb_appends *appends, struct ledger_request *request);

#endif
