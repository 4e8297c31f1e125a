/*
 * The durability and fan-out planes of one gateway, put together: ledger → send → feed → fan-out →
 * delivery. A part of the composition root (gateway.c), in a file of its own because it is one subject.
 *
 * One thread, the gateway's.
 */
#ifndef ROLLCALL_APP_GATEWAY_MESSAGES_H
#define ROLLCALL_APP_GATEWAY_MESSAGES_H

#include "feed/local/local_feed.h"
#include "messages/message_plane.h"
#include "net/loop.h"
#include "routing/fanout.h"
#include "typing/typing_plane.h"

/* Borrowed for the life of what is made. */
struct gateway_messages_parts {
    const struct config *config;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct ledger *ledger; /* what breaker_ledger_make() made */
    struct ledger_client *client;
    struct delivery *delivery;
    struct typing_plane *typing;
    uint64_t hash_seed;
    int64_t started_at_ms;
    bool replays; /* this gateway looks after what is left in the outbox */
};

struct gateway_messages {
    struct gateway_messages_parts parts;
    struct message_plane plane;
    struct fanout fanout;
    struct feed *feed;
    struct wheel_timer expiry; /* of the ledger's requests */
};

/* False when memory is short. */
bool gateway_messages_make(struct gateway_messages *messages,
                           const struct gateway_messages_parts *parts);

/* Starts timers; on the gateway's thread. */
void gateway_messages_start(struct gateway_messages *messages);

/* Once a second. */
void gateway_messages_tick(struct gateway_messages *messages);

/* Sets the metrics that show how things stand. */
void gateway_messages_sample(struct gateway_messages *messages);

/* Nothing is under way. */
bool gateway_messages_idle(const struct gateway_messages *messages);

/* The gateway's thread is about to end: nothing more is asked of the ledger. */
void gateway_messages_stop(struct gateway_messages *messages);

/* After the ledger's last completion. */
void gateway_messages_free(struct gateway_messages *messages);

#endif
