/*
 * The order of a user's chats by their last activity.
 *
 * A message must not write one row per member, so the exact time of a chat's last activity stands in the chat's
 * counter, which an append writes anyway. A member's row has only a lower bound of it, `listed_ms`, and an index over
 * it. The bound is at most SQLITE_ACTIVITY_STEP_MS behind: an append that would leave it further behind raises it in the
 * rows of all members, at most once per step and chat. A page is read from the index, the latest bound first, until the
 * next bound plus the step is earlier than the page's last entry. So a page costs about its own length, plus the chats
 * that were active within one step of its end.
 *
 * The rows of a chat with more than SQLITE_ACTIVITY_MEMBERS_MAX members are not raised: they have the bound
 * SQLITE_ACTIVITY_LARGE, for good, and every page reads them first.
 *
 * Invariant: bound <= activity < bound + step, except for large chats.
 */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_ACTIVITY_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_ACTIVITY_H

#include "base/id_list.h"
#include "ledger/ledger_request.h"
#include "ledger/sqlite/database.h"

enum { SQLITE_ACTIVITY_STEP_MS = 3600 * 1000, SQLITE_ACTIVITY_MEMBERS_MAX = 100 };

#define SQLITE_ACTIVITY_LARGE INT64_MAX

struct sqlite_activity_entry {
    struct slice chat;
    int64_t activity_ms;
};

enum sqlite_activity_tier { SQLITE_ACTIVITY_NOT_ACCEPTED, SQLITE_ACTIVITY_ACCEPTED };

/* A page of a user's chats in the request's memory. */
struct sqlite_activity_page {
    struct ledger_request_array entries; /* the latest first, then the greatest id */
    size_t count_max;
};

static inline struct sqlite_activity_entry *sqlite_activity_page_entries(
    const struct sqlite_activity_page *page)
{
    return page->entries.items;
}

/* Adds the user's chats of one tier that come after `after` (NULL: all), and keeps the first of all. */
void sqlite_activity_page_add(struct database *database, struct ledger_request *request,
                              struct sqlite_activity_page *page, struct slice user,
                              enum sqlite_activity_tier tier,
                              const struct sqlite_activity_entry *after);

/* Returns the ids of the user's first chats, accepted ones before others, by activity within each tier. */
struct id_list sqlite_activity_first(struct database *database, struct ledger_request *request,
                                     struct slice user, size_t count_max);

/* Returns the activity of a chat as it is now; 0 when it is unknown. */
int64_t sqlite_activity_of_chat(struct database *database, struct slice chat);

/* Returns the bound that the members of a chat have after activity at `activity_ms`, and raises it in their rows if it
 * changes. */
int64_t sqlite_activity_raise(struct database *database, struct slice chat, int64_t listed_ms,
                              int64_t activity_ms);

/* Makes a chat large for good. */
void sqlite_activity_make_large(struct database *database, struct slice chat);

#endif
