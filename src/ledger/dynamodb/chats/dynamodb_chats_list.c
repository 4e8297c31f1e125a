/*
 * The chats of a user, by their last activity. The user's own entries tell which they are; the time of the last activity is in the
 * chats' counters, which an append writes anyway. So a message writes nothing per member, and a page reads one counter per chat
 * of the user.
 */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"

#include <stdlib.h>

struct listed_chat {
    struct dynamodb_chat chat;
    int64_t since_ms;
    int64_t activity_ms;
    bool is_accepted;
    bool is_draft; /* of a chat that does not exist, or was made from another draft */
};

struct chat_listing {
    struct listed_chat *chats;
    size_t count;
};

/* ---- entries ---- */

/* "chat#CHAT", or "chat+CHAT#DRAFT" */
static struct dynamodb_chat parse_entry_key(struct slice key)
{
    struct slice rest = slice_after(key, strlen("chat#"));
    if (slice_starts_with(key, SLICE("chat#")) || rest.len <= DYNAMODB_DRAFT_CHARACTERS + 1)
        return (struct dynamodb_chat){.id = rest};
    size_t id_len = rest.len - DYNAMODB_DRAFT_CHARACTERS - 1;
    return (struct dynamodb_chat){.id = slice_first(rest, id_len),
                                  .draft = slice_after(rest, id_len + 1)};
}

static struct chat_listing read_entries(struct dynamodb_task *task, struct slice user)
{
    struct dynamodb_query query = {.table = DYNAMODB_USERS,
                                   .partition = user,
                                   .prefix = "chat",
                                   .attributes = "part_key, is_accepted, since_ms"};
    struct ledger_request_array listed = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct listed_chat *chat = ledger_request_array_push(task->request, &listed, sizeof(*chat));
        if (!chat)
            break;
        chat->chat = parse_entry_key(dynamodb_item_text(&item, "part_key"));
        chat->is_accepted = dynamodb_item_number(&item, "is_accepted") != 0;
        chat->since_ms = dynamodb_item_number(&item, "since_ms");
    }
    return (struct chat_listing){listed.items, listed.count};
}

/* ---- items of all chats of a listing ---- */

typedef struct dynamodb_key (*chat_item_key)(struct slice chat);

/* Reads one item of each chat. Returns NULL when out of memory. */
static struct dynamodb_item *read_of_each(struct dynamodb_task *task, const struct id_list *chats,
                                          chat_item_key make_key)
{
    struct dynamodb_key *keys = ledger_request_alloc(task->request, chats->count * sizeof(*keys));
    struct dynamodb_item *items =
        ledger_request_alloc(task->request, chats->count * sizeof(*items));
    if (!keys || !items)
        return NULL;
    for (size_t i = 0; i < chats->count; i++)
        keys[i] = make_key(chats->ids[i]);
    dynamodb_get_many(task, keys, chats->count, items);
    return items;
}

/* Tells which of the staged chats are not those that exist. There may be several drafts of one chat. */
static void find_drafts(struct dynamodb_task *task, struct chat_listing *listing)
{
    struct slice *ids = ledger_request_alloc(task->request, listing->count * sizeof(*ids));
    struct id_list staged = {ids, 0};
    for (size_t i = 0; ids && i < listing->count; i++)
        if (listing->chats[i].chat.draft.len)
            ids[staged.count++] = listing->chats[i].chat.id;
    if (staged.count == 0)
        return;
    staged.count = id_list_sort_unique(ids, staged.count);
    struct dynamodb_item *items = read_of_each(task, &staged, dynamodb_chat_key);
    for (size_t i = 0; items && i < listing->count; i++) {
        struct listed_chat *listed = &listing->chats[i];
        if (!listed->chat.draft.len)
            continue;
        const struct dynamodb_item *chat =
            &items[id_list_sorted_find(&staged, listed->chat.id) - ids];
        listed->is_draft = !slice_equal(dynamodb_item_text(chat, "draft_id"), listed->chat.draft);
    }
}

/* Removes entries that are none from the listing, and old ones from the table. */
static void drop_drafts(struct dynamodb_task *task, struct slice user, struct chat_listing *listing)
{
    struct ledger_request_array drafts = {0}, since_ms = {0};
    size_t kept = 0;
    find_drafts(task, listing);
    for (size_t i = 0; i < listing->count; i++) {
        const struct listed_chat *listed = &listing->chats[i];
        if (!listed->is_draft) {
            listing->chats[kept++] = *listed;
            continue;
        }
        struct dynamodb_chat *draft =
            ledger_request_array_push(task->request, &drafts, sizeof(*draft));
        int64_t *since = ledger_request_array_push(task->request, &since_ms, sizeof(*since));
        if (!draft || !since)
            break;
        *draft = listed->chat;
        *since = listed->since_ms;
    }
    listing->count = kept;
    if (drafts.count > 0 && !task->failed)
        dynamodb_chat_drafts_clear(task, user, drafts.items, since_ms.items, drafts.count);
}

/* Returns all chats of the user, with their activity, in no order. A chat without a counter is halted and keeps a place. */
static struct chat_listing list_chats_of_user(struct dynamodb_task *task, struct slice user)
{
    struct chat_listing listing = read_entries(task, user);
    drop_drafts(task, user, &listing);
    struct slice *ids = ledger_request_alloc(task->request, listing.count * sizeof(*ids));
    for (size_t i = 0; ids && i < listing.count; i++)
        ids[i] = listing.chats[i].chat.id;
    struct dynamodb_item *counters =
        ids ? read_of_each(task, &(struct id_list){ids, listing.count}, dynamodb_chat_counter_key)
            : NULL;
    for (size_t i = 0; counters && i < listing.count; i++) {
        struct listed_chat *listed = &listing.chats[i];
        listed->chat.counter = counters[i];
        listed->activity_ms = dynamodb_item_exists(&counters[i])
                                  ? dynamodb_item_number(&counters[i], "activity_ms")
                                  : listed->since_ms;
    }
    return listing;
}

/* ---- order ---- */

/* The latest first, then by id, the greatest first. */
static int compare_activity(const struct listed_chat *a, const struct listed_chat *b)
{
    if (a->activity_ms != b->activity_ms)
        return a->activity_ms > b->activity_ms ? -1 : 1;
    return id_list_compare(b->chat.id, a->chat.id);
}

static int compare_by_activity(const void *a, const void *b)
{
    return compare_activity(a, b);
}

static int compare_by_acceptance(const void *a, const void *b)
{
    const struct listed_chat *first = a, *second = b;
    if (first->is_accepted != second->is_accepted)
        return first->is_accepted ? -1 : 1;
    return compare_activity(first, second);
}

struct id_list dynamodb_chats_of_user(struct dynamodb_task *task, struct slice user,
                                      uint32_t chats_max)
{
    struct chat_listing listing = list_chats_of_user(task, user);
    size_t count = listing.count < chats_max ? listing.count : chats_max;
    struct slice *ids = ledger_request_alloc(task->request, count * sizeof(*ids));
    if (!ids || count == 0)
        return (struct id_list){0};
    qsort(listing.chats, listing.count, sizeof(*listing.chats), compare_by_acceptance);
    for (size_t i = 0; i < count; i++)
        ids[i] = listing.chats[i].chat.id;
    struct id_list chats = {ids, count};
    id_list_sort(&chats);
    return chats;
}

/* ---- pages ---- */

/* Cuts off everything up to the cursor. The place of a chat is shown to its members only; for others the page starts at the
 * first chat. */
static void skip_to_cursor(const struct ledger_request_input *input, struct chat_listing *listing)
{
    struct listed_chat cursor = {.chat = {.id = input->after},
                                 .activity_ms = input->after_activity_ms};
    bool is_known = input->after_activity_ms != LEDGER_ACTIVITY_NOW;
    size_t first = 0;
    for (size_t i = 0; !is_known && i < listing->count; i++)
        if (slice_equal(listing->chats[i].chat.id, input->after)) {
            cursor.activity_ms = listing->chats[i].activity_ms;
            is_known = true;
        }
    if (!input->after.data || !is_known)
        return;
    while (first < listing->count && compare_activity(&listing->chats[first], &cursor) <= 0)
        first++;
    listing->chats += first;
    listing->count -= first;
}

/* Reads the chats of a page with the user's marks. Returns false if one is missing: the tables are damaged. */
static bool read_page_items(struct dynamodb_task *task, struct slice user,
                            const struct chat_listing *page)
{
    size_t count = page->count;
    struct dynamodb_key *keys = ledger_request_alloc(task->request, 3 * count * sizeof(*keys));
    struct dynamodb_item *items = ledger_request_alloc(task->request, 3 * count * sizeof(*items));
    if (!keys || !items)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct slice id = page->chats[i].chat.id;
        keys[3 * i] = dynamodb_chat_key(id);
        keys[3 * i + 1] = dynamodb_chat_part_key(task, id, "sent#", user);
        keys[3 * i + 2] = dynamodb_chat_part_key(task, id, "read#", user);
    }
    dynamodb_get_many(task, keys, 3 * count, items);
    for (size_t i = 0; i < count; i++) {
        struct dynamodb_chat *chat = &page->chats[i].chat;
        chat->item = items[3 * i];
        chat->sent = items[3 * i + 1];
        chat->read = items[3 * i + 2];
        if (!dynamodb_item_exists(&chat->item))
            return false;
    }
    return true;
}

/* Returns how many chats of a page have LEDGER_CHATS_PAGE_MEMBERS_MAX members together; the last may exceed it. */
static size_t count_within_members(const struct chat_listing *page)
{
    size_t members = 0, count = 0;
    while (count < page->count && members < LEDGER_CHATS_PAGE_MEMBERS_MAX)
        members += (size_t)dynamodb_item_number(&page->chats[count++].chat.item, "member_count");
    return count;
}

struct chats_page {
    const struct listed_chat *listed;
    struct slice user;
    bool with_members;
    struct ledger_chat *out;
};

static void describe_listed_chat(struct dynamodb_task *part, size_t at, void *arg)
{
    const struct chats_page *page = arg;
    const struct dynamodb_chat_parts parts = {.members = page->with_members,
                                              .direct_profiles = page->with_members};
    dynamodb_chat_describe(part, &page->listed[at].chat, page->user, &parts, &page->out[at]);
    page->out[at].activity_ms = page->listed[at].activity_ms;
}

enum ledger_status dynamodb_chats_list(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct ledger_chats_outcome *outcome = &task->request->outcome.chats;
    struct chat_listing page = list_chats_of_user(task, input->user);
    if (page.count > 0)
        qsort(page.chats, page.count, sizeof(*page.chats), compare_by_activity);
    skip_to_cursor(input, &page);
    size_t left = page.count;
    page.count = left < input->limit ? left : input->limit;
    struct chats_page out = {
        .listed = page.chats,
        .user = input->user,
        .with_members = input->with_members,
        .out = ledger_request_alloc(task->request, page.count * sizeof(*outcome->chats))};
    if (!out.out || !read_page_items(task, input->user, &page))
        return LEDGER_UNAVAILABLE;
    if (input->with_members)
        page.count = count_within_members(&page);
    dynamodb_parallel(task, page.count, describe_listed_chat, &out);
    outcome->chats = out.out;
    outcome->count = page.count;
    outcome->has_more = page.count < left;
    return LEDGER_OK;
}
