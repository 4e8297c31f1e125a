/*
 * The message plane of one worker: sending (message_send.h), reading (message_history.h) and the
 * acknowledgements of devices (message_cursor.h). It uses the ledger and the feed, and does not
 * depend on connections.
 *
 * app/gateway/gateway_messages.c makes it; the fields above the line are set once. One thread.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_PLANE_H
#define ROLLCALL_MESSAGES_MESSAGE_PLANE_H

#include "base/clock.h"
#include "base/random.h"
#include "base/table.h"
#include "config/config.h"
#include "feed/feed_producer.h"
#include "ledger/ledger_messages.h"
#include "metrics/metrics.h"
#include "protocol/message.h"

/* A user sent a message to a chat and so stopped typing there. */
typedef void (*message_sent_hook)(void *arg, struct slice chat, struct slice user);

/* A user's read mark moved, and others may be told. */
typedef void (*message_read_hook)(void *arg, struct slice chat, struct slice user,
                                  const struct ledger_cursor_outcome *outcome);

struct message_plane {
    const struct config *config;
    const struct clock *clock;
    struct random *random;
    struct ledger_client *ledger;
    struct feed_producer *feed;
    struct metrics *metrics;
    message_sent_hook on_sent; /* may be NULL */
    void *on_sent_arg;
    message_read_hook on_read; /* may be NULL */
    void *on_read_arg;
    /* ---- */
    size_t sends;         /* under way */
    struct table cursors; /* acknowledgements on their way to the ledger */
    bool stopped;         /* the ledger is closed or closing: no operation of it may start */
};

bool message_plane_init(struct message_plane *plane, uint64_t seed);
void message_plane_free(struct message_plane *plane);

/* Returns whether nothing is under way. */
bool message_plane_idle(const struct message_plane *plane);

#endif
