#include "ledger/last_seen.h"

#include "base/container.h"

#include <assert.h>
#include <stdlib.h>

struct last_seen_entry {
    struct table_node node;
    struct list link; /* in waiting or in sent */
    int64_t last_seen_ms;
    uint64_t presence_version;
    bool changed; /* noted again while in flight */
    size_t user_bytes;
    char user[];
};

static bool last_seen_entry_matches(const struct table_node *node, struct slice key)
{
    const struct last_seen_entry *entry = CONTAINER_OF(node, struct last_seen_entry, node);
    return slice_equal((struct slice){entry->user, entry->user_bytes}, key);
}

bool last_seen_init(struct last_seen *last_seen, struct ledger_client *client, uint64_t seed)
{
    *last_seen = (struct last_seen){.client = client};
    list_init(&last_seen->waiting);
    list_init(&last_seen->sent);
    return table_init(&last_seen->entries, seed, last_seen_entry_matches);
}

static void free_last_seen_entry(struct last_seen *last_seen, struct last_seen_entry *entry)
{
    list_remove(&entry->link);
    table_remove(&last_seen->entries, &entry->node);
    free(entry);
}

void last_seen_free(struct last_seen *last_seen)
{
    assert(list_empty(&last_seen->sent));
    while (!list_empty(&last_seen->waiting))
        free_last_seen_entry(last_seen,
                             CONTAINER_OF(last_seen->waiting.next, struct last_seen_entry, link));
    table_free(&last_seen->entries);
}

/* ---- noting ---- */

static struct last_seen_entry *add_last_seen_entry(struct last_seen *last_seen, struct slice user)
{
    if (last_seen->entries.size >= LAST_SEEN_USERS_MAX)
        return NULL;
    struct last_seen_entry *entry = calloc(1, sizeof(*entry) + user.len);
    if (!entry)
        return NULL;
    memcpy(entry->user, user.data, user.len);
    entry->user_bytes = user.len;
    if (list_empty(&last_seen->waiting) && list_empty(&last_seen->sent))
        last_seen->due_ms = last_seen->client->clock->now_ms + LAST_SEEN_HOLD_MS;
    list_append(&last_seen->waiting, &entry->link);
    table_insert(&last_seen->entries, &entry->node, user);
    return entry;
}

void last_seen_note(struct last_seen *last_seen, struct slice user, int64_t last_seen_ms,
                    uint64_t presence_version)
{
    assert(user.len > 0 && user.len <= LEDGER_ID_BYTES_MAX);
    struct table_node *node = table_find(&last_seen->entries, user);
    struct last_seen_entry *entry = node ? CONTAINER_OF(node, struct last_seen_entry, node)
                                         : add_last_seen_entry(last_seen, user);
    if (!entry) {
        last_seen->dropped++;
        return;
    }
    if (last_seen_ms > entry->last_seen_ms)
        entry->last_seen_ms = last_seen_ms;
    if (presence_version > entry->presence_version)
        entry->presence_version = presence_version;
    entry->changed = true;
}

/* ---- sending ---- */

/* Sends the rest at once; entries noted while the batch was in flight wait LAST_SEEN_HOLD_MS. */
static void on_last_seen_stored(void *arg, const struct ledger_change_outcome *outcome)
{
    struct last_seen *last_seen = arg;
    int64_t now_ms = last_seen->client->clock->now_ms;
    bool stored = outcome->status == LEDGER_OK;
    while (!list_empty(&last_seen->sent)) {
        struct last_seen_entry *entry =
            CONTAINER_OF(last_seen->sent.next, struct last_seen_entry, link);
        if (stored && !entry->changed) {
            free_last_seen_entry(last_seen, entry);
            continue;
        }
        list_remove(&entry->link);
        list_append(&last_seen->waiting, &entry->link);
    }
    if (!stored)
        last_seen->due_ms = now_ms + LAST_SEEN_RETRY_MS;
    else if (last_seen->has_more || last_seen->flushing)
        last_seen->due_ms = now_ms;
    else
        last_seen->due_ms = now_ms + LAST_SEEN_HOLD_MS;
    if (last_seen_idle(last_seen))
        last_seen->flushing = false;
    last_seen_tick(last_seen);
}

void last_seen_tick(struct last_seen *last_seen)
{
    if (last_seen->client->clock->now_ms < last_seen_due_ms(last_seen))
        return;
    struct ledger_last_seen batch[LEDGER_LAST_SEEN_BATCH_MAX];
    size_t count = 0;
    while (count < LEDGER_LAST_SEEN_BATCH_MAX && !list_empty(&last_seen->waiting)) {
        struct last_seen_entry *entry =
            CONTAINER_OF(last_seen->waiting.next, struct last_seen_entry, link);
        batch[count++] = (struct ledger_last_seen){
            {entry->user, entry->user_bytes}, entry->last_seen_ms, entry->presence_version};
        entry->changed = false;
        list_remove(&entry->link);
        list_append(&last_seen->sent, &entry->link);
    }
    last_seen->has_more = !list_empty(&last_seen->waiting);
    ledger_last_seen_put(last_seen->client, batch, count, on_last_seen_stored, last_seen);
}

int64_t last_seen_due_ms(const struct last_seen *last_seen)
{
    bool sendable = !list_empty(&last_seen->waiting) && list_empty(&last_seen->sent);
    return sendable ? last_seen->due_ms : INT64_MAX;
}

void last_seen_flush(struct last_seen *last_seen)
{
    last_seen->due_ms = last_seen->client->clock->now_ms;
    last_seen->flushing = !last_seen_idle(last_seen);
    last_seen_tick(last_seen);
}

bool last_seen_idle(const struct last_seen *last_seen)
{
    return list_empty(&last_seen->waiting) && list_empty(&last_seen->sent);
}
