/*
 * Reads the messages of a chat, one page at a time and in both directions. sync_request and the REST history
 * share it.
 *
 * A page is one snapshot: its sequences are dense, and `latest_sequence` and `has_more` belong to the same
 * instant. So a client that continues after the last sequence of a page misses nothing, however many messages
 * arrive meanwhile. A page is bounded in messages and in bytes (an eighth of what a connection may have
 * queued); `has_more` is set in both cases.
 */
#ifndef ROLLCALL_MESSAGES_MESSAGE_HISTORY_H
#define ROLLCALL_MESSAGES_MESSAGE_HISTORY_H

#include "messages/message_plane.h"

enum { MESSAGE_HISTORY_PAGE_DEFAULT = 100, MESSAGE_HISTORY_PAGE_MAX = 500 };

struct message_history_query {
    struct slice chat;
    struct slice reader;
    uint64_t sequence; /* the page lies after it, or before it */
    int64_t limit;     /* 0: the default; the maximum applies */
    bool backwards;
};

/* `page` lasts until the completion returns; it is NULL unless `status` is LEDGER_OK. */
typedef void (*message_history_done)(void *arg, enum ledger_status status,
                                     const struct sync_response *page);

/* `done` runs exactly once, possibly before this function returns. */
void message_history_read(struct message_plane *plane, const struct message_history_query *query,
                          message_history_done done, void *arg);

#endif
