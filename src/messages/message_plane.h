/*
 * The durability plane as one worker holds it: sending (send.h), reading (history.h) and what devices
 * have acknowledged (cursor.h). It works on the ledger and the feed and knows no connection.
 *
 * Made by gateway.c; the fields above the line are set once. One thread.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_PLANE_H
#define ROLLCALL_MESSAGES_MESSAGE_PLANE_H

#include "base/clock.h"
#include "base/random.h"
#include "base/table.h"
#include "config/config.h"
#include "feed/feed.h"
#include "ledger/ledger_messages.h"
#include "metrics/metrics.h"
#include "protocol/message.h"

struct message_plane {
    const struct config *config;
    const struct clock *clock;
    struct random *random;
    struct ledger_client *ledger;
    struct feed *feed;
    struct metrics *metrics;
    /* Somebody sent a message to a chat, so is no longer typing there. May be NULL. */
    void (*sent)(void *arg, struct slice chat, struct slice user);
    void *sent_arg;
    /* ---- */
    size_t sends;         /* under way */
    struct table cursors; /* acknowledgements on their way to the ledger */
    bool stopped;         /* the ledger is closed or about to be: nothing more may be asked of it */
};

bool message_plane_init(struct message_plane *plane, uint64_t seed);
void message_plane_free(struct message_plane *plane);

/* Nothing is under way. */
bool message_plane_idle(const struct message_plane *plane);

#endif
