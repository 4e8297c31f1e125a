/*
 * Composes the path of a message through one gateway: ledger → send → feed → fan-out → delivery. A part of
 * the composition root (gateway_compose.c).
 *
 * Runs on the gateway's thread.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_MESSAGES_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_MESSAGES_H

#include "app/gateway/gateway_feed.h"
#include "app/ledger_expiry.h"
#include "chats/chat_plane.h"
#include "messages/message_plane.h"
#include "net/loop.h"
#include "routing/fanout.h"
#include "typing/typing_plane.h"

/* Borrowed for the life of struct gateway_messages. */
struct gateway_messages_parts {
    const struct config *config;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct ledger *ledger; /* from breaker_ledger_make() */
    struct ledger_client *client;
    struct delivery *delivery;
    struct typing_plane *typing;
    struct chat_plane *chats;
    uint64_t hash_seed;
    int64_t started_at_ms;
    bool replays; /* this gateway replays what is left in the outbox */
};

struct gateway_messages {
    struct gateway_messages_parts parts;
    struct message_plane plane;
    struct fanout fanout;
    struct gateway_feed feed;
    struct ledger_expiry expiry;
};

/* Returns false when out of memory, or when the feed cannot be made. */
bool gateway_messages_make(struct gateway_messages *messages,
                           const struct gateway_messages_parts *parts);

/* Starts the timers. */
void gateway_messages_start(struct gateway_messages *messages);

/* Call it once a second. */
void gateway_messages_tick(struct gateway_messages *messages);

/* Sets the gauges. */
void gateway_messages_sample(struct gateway_messages *messages);

/* Leaves the consumers of the feed. Returns true when no operation is pending; call it until then. */
bool gateway_messages_idle(struct gateway_messages *messages);

/* The gateway's thread is about to end: send, deliver and publish nothing more. */
void gateway_messages_stop(struct gateway_messages *messages);

/* Call it after the last completion of the ledger. */
void gateway_messages_free(struct gateway_messages *messages);

#endif
