/*
 * Reading a chat's messages, a page at a time and in both directions: what sync_request and the REST
 * history share.
 *
 * A page is one snapshot: its messages have no gap, and `latest_sequence` and `has_more` belong to the
 * same instant. Going on after the last sequence of a page therefore misses nothing, however many
 * messages arrive meanwhile. A page is bounded in messages and in bytes (an eighth of what a connection
 * may have queued); has_more tells either way.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_HISTORY_H
#define ROLLCALL_MESSAGES_MESSAGE_HISTORY_H

#include "messages/message_plane.h"

enum { HISTORY_PAGE_DEFAULT = 100, HISTORY_PAGE_MAX = 500 };

struct history_query {
    struct slice chat;
    struct slice viewer;
    uint64_t sequence; /* the page lies behind it, or before it */
    int64_t limit;     /* 0: the default; more than the maximum is cut */
    bool backwards;
};

/* `page` lasts for the call; it is NULL unless `status` is LEDGER_OK. */
typedef void (*message_history_done)(void *arg, enum ledger_status status,
                                     const struct sync_response *page);

/* `done` runs once, also before this returns, with LEDGER_OK and a page that lasts for the call, or with
 * why not. */
void history_read(struct message_plane *plane, const struct history_query *query,
                  message_history_done done, void *arg);

#endif
