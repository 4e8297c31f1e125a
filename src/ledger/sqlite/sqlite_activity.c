#include "ledger/sqlite/sqlite_activity.h"

#include "base/id_list.h"

static bool activity_comes_before(const struct sqlite_activity_entry *a,
                                  const struct sqlite_activity_entry *b)
{
    if (a->activity_ms != b->activity_ms)
        return a->activity_ms > b->activity_ms;
    return id_list_compare(a->chat, b->chat) > 0;
}

/* Keeps the entry at its place, unless the page is full of earlier ones. Rows arrive nearly in order, so the place is
 * looked for from the end. */
static void keep_activity_entry(struct ledger_request *request, struct sqlite_activity_page *page,
                                struct sqlite_activity_entry entry)
{
    struct sqlite_activity_entry *entries = sqlite_activity_page_entries(page);
    size_t at = page->entries.count;
    while (at > 0 && activity_comes_before(&entry, &entries[at - 1]))
        at--;
    if (at == page->count_max)
        return;
    if (page->entries.count < page->count_max &&
        !ledger_request_array_push(request, &page->entries, sizeof(entry))) {
        page->count_max = page->entries.count; /* out of memory: the request fails */
        return;
    }
    entries = sqlite_activity_page_entries(page);
    entry.chat = ledger_request_copy(request, entry.chat);
    memmove(&entries[at + 1], &entries[at], (page->entries.count - 1 - at) * sizeof(entry));
    entries[at] = entry;
}

/* Returns whether no chat with this bound, or an earlier one, can be on the page any more. */
static bool activity_page_ends_before(const struct sqlite_activity_page *page, int64_t listed_ms)
{
    size_t count = page->entries.count;
    return count == page->count_max &&
           (count == 0 || listed_ms + SQLITE_ACTIVITY_STEP_MS <
                              sqlite_activity_page_entries(page)[count - 1].activity_ms);
}

/* Adds the chat of a row: its id, bound and activity. Returns false when no later row can be on the page. */
static bool add_listed_chat(struct ledger_request *request, struct sqlite_activity_page *page,
                            struct query *row, const struct sqlite_activity_entry *after)
{
    int64_t listed_ms = query_int(row, 1), activity_ms = query_int(row, 2);
    bool is_large = listed_ms == SQLITE_ACTIVITY_LARGE;
    if (!is_large && activity_page_ends_before(page, listed_ms))
        return false;
    if (!is_large && activity_ms < listed_ms)
        activity_ms = listed_ms; /* a lost counter was repaired */
    struct sqlite_activity_entry entry = {query_text(row, 0), activity_ms};
    if (!after || activity_comes_before(after, &entry))
        keep_activity_entry(request, page, entry);
    return true;
}

/* Adds the chats of one tier whose bound is within a range. A draft has neither a counter nor a row in `chats`. */
static void scan_activity_range(struct database *database, struct ledger_request *request,
                                struct sqlite_activity_page *page, struct slice user,
                                enum sqlite_activity_tier tier, int64_t least_ms, int64_t most_ms,
                                const struct sqlite_activity_entry *after)
{
    static const char SELECT_LISTED[] =
        "SELECT m.chat_id, m.listed_ms, k.activity_ms FROM chat_members m "
        "LEFT JOIN chat_counters k ON k.chat_id = m.chat_id "
        "WHERE m.user_id = ? AND m.accepted = ? AND m.listed_ms BETWEEN ? AND ? AND"
        "  (k.chat_id IS NOT NULL OR"
        "   EXISTS (SELECT 1 FROM chats c WHERE c.chat_id = m.chat_id)) "
        "ORDER BY m.listed_ms DESC";
    struct query query = query_open_texts(database, SELECT_LISTED, user, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, tier);
    query_bind_int(&query, least_ms);
    query_bind_int(&query, most_ms);
    while (query_next(&query) && add_listed_chat(request, page, &query, after))
        continue;
    query_end(&query);
}

/* Moves the ids of a page to `ids` and empties the page for the next tier. */
static void take_page_ids(struct ledger_request *request, struct sqlite_activity_page *page,
                          struct ledger_request_array *ids)
{
    size_t left = page->count_max - page->entries.count;
    for (size_t i = 0; i < page->entries.count; i++) {
        struct slice *id = ledger_request_array_push(request, ids, sizeof(*id));
        if (id)
            *id = sqlite_activity_page_entries(page)[i].chat;
    }
    *page = (struct sqlite_activity_page){.count_max = left};
}

struct id_list sqlite_activity_first(struct database *database, struct ledger_request *request,
                                     struct slice user, size_t count_max)
{
    static const char SELECT_FIRST[] =
        "SELECT m.chat_id, m.listed_ms, k.activity_ms, m.accepted FROM chat_members m "
        "LEFT JOIN chat_counters k ON k.chat_id = m.chat_id "
        "WHERE m.user_id = ? AND"
        "  (k.chat_id IS NOT NULL OR"
        "   EXISTS (SELECT 1 FROM chats c WHERE c.chat_id = m.chat_id)) "
        "ORDER BY m.accepted DESC, m.listed_ms DESC";
    struct sqlite_activity_page page = {.count_max = count_max};
    struct ledger_request_array ids = {0};
    int64_t tier = SQLITE_ACTIVITY_ACCEPTED;
    struct query query = query_open_texts(database, SELECT_FIRST, user, SLICE_NONE, SLICE_NONE);
    while (query_next(&query)) {
        if (query_int(&query, 3) != tier)
            take_page_ids(request, &page, &ids);
        tier = query_int(&query, 3);
        if (page.count_max == 0 || !add_listed_chat(request, &page, &query, NULL))
            break;
    }
    query_end(&query);
    take_page_ids(request, &page, &ids);
    return (struct id_list){ids.items, ids.count};
}

void sqlite_activity_page_add(struct database *database, struct ledger_request *request,
                              struct sqlite_activity_page *page, struct slice user,
                              enum sqlite_activity_tier tier,
                              const struct sqlite_activity_entry *after)
{
    int64_t most_ms = after ? after->activity_ms : SQLITE_ACTIVITY_LARGE;
    if (most_ms < SQLITE_ACTIVITY_LARGE)
        scan_activity_range(database, request, page, user, tier, SQLITE_ACTIVITY_LARGE,
                            SQLITE_ACTIVITY_LARGE, after);
    scan_activity_range(database, request, page, user, tier, INT64_MIN, most_ms, after);
}

int64_t sqlite_activity_of_chat(struct database *database, struct slice chat)
{
    static const char SELECT_ACTIVITY[] = "SELECT activity_ms FROM chat_counters WHERE chat_id = ?";
    struct query query = query_open_texts(database, SELECT_ACTIVITY, chat, SLICE_NONE, SLICE_NONE);
    int64_t activity_ms = query_next(&query) ? query_int(&query, 0) : 0;
    query_end(&query);
    return activity_ms;
}

static void list_chat_at(struct database *database, struct slice chat, int64_t listed_ms)
{
    static const char UPDATE_LISTED[] = "UPDATE chat_members SET listed_ms = ?2 WHERE chat_id = ?1";
    struct query query = query_open_texts(database, UPDATE_LISTED, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, listed_ms);
    query_run(&query);
}

int64_t sqlite_activity_raise(struct database *database, struct slice chat, int64_t listed_ms,
                              int64_t activity_ms)
{
    if (listed_ms == SQLITE_ACTIVITY_LARGE || activity_ms - listed_ms < SQLITE_ACTIVITY_STEP_MS)
        return listed_ms;
    list_chat_at(database, chat, activity_ms);
    return activity_ms;
}

void sqlite_activity_make_large(struct database *database, struct slice chat)
{
    static const char UPDATE_COUNTER[] =
        "UPDATE chat_counters SET listed_ms = ?2 WHERE chat_id = ?1";
    struct query query = query_open_texts(database, UPDATE_COUNTER, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, SQLITE_ACTIVITY_LARGE);
    query_run(&query);
    list_chat_at(database, chat, SQLITE_ACTIVITY_LARGE);
}
