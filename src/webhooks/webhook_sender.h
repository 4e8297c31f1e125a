/*
 * The webhooks of one gateway: for each endpoint a lane of best-effort events (presence, connections), and in the first gateway of a
 * process the queues of durable events (webhook_queue.h), of which one process of the fleet sends each.
 *
 * Best-effort events are those of this gateway. At most WEBHOOK_VOLATILE_MAX of them wait for an endpoint; further ones are dropped, and so
 * is what was not taken within `webhooks.give_up_seconds`, or when the process ends. Both are counted.
 *
 * Endpoints share nothing but the HTTP client, whose requests do not wait for each other. One thread.
 */
#ifndef ROLLCALL_WEBHOOKS_WEBHOOK_SENDER_H
#define ROLLCALL_WEBHOOKS_WEBHOOK_SENDER_H

#include "webhooks/webhook_queue.h"

enum { WEBHOOK_VOLATILE_MAX = 10000 };

struct webhook_sender;

/* Borrowed for the life of the sender. */
struct webhook_sender_parts {
    const struct config *config;
    const struct webhook_endpoints *endpoints;
    struct loop *loop;
    struct random *random;
    struct metrics *metrics;
    struct ledger_client *ledger;
    struct state_store *store;
    struct slice holder; /* the gateway's id */
    bool holds_queues;   /* the first gateway of its process */
};

/* Returns NULL when out of memory or descriptors. */
struct webhook_sender *webhook_sender_make(const struct webhook_sender_parts *parts);

void webhook_sender_start(struct webhook_sender *sender);

/* Returns whether an endpoint wants events of this type. */
bool webhook_sender_wants(const struct webhook_sender *sender, enum ledger_event_type type);

/* Takes a copy of a best-effort event. */
void webhook_sender_offer(struct webhook_sender *sender, const struct ledger_event *event);

/* Sets the gauges. */
void webhook_sender_sample(struct webhook_sender *sender);

/* Sends nothing more. Its events of the ledger are sent by whoever comes next. */
void webhook_sender_stop(struct webhook_sender *sender);

/* Call it after the last completion of the ledger and the store, while the loop exists. */
void webhook_sender_free(struct webhook_sender **sender);

#endif
