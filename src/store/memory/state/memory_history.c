#include "store/memory/state/memory_history.h"

static const char *const CAUSE_NAMES[MEMORY_CAUSE_COUNT] = {
    [MEMORY_CONNECTED] = "connected",
    [MEMORY_DISCONNECTED] = "disconnected",
    [MEMORY_EXPIRED] = "expired",
    [MEMORY_IDLE] = "idle",
    [MEMORY_ACTIVE] = "active",
    [MEMORY_GRACE_OVER] = "grace over",
    [MEMORY_CALL_STARTED] = "call started",
    [MEMORY_CALL_ENDED] = "call ended",
};

void memory_history_add(struct memory_history *history, const struct presence *presence,
                        enum memory_cause cause, int64_t wall_ms)
{
    struct slice user = presence->user_id;
    history->entries[history->next++ % MEMORY_HISTORY_ENTRIES] = (struct memory_history_entry){
        .user_hash = hash_key_hash(&history->key, user),
        .at_ms = wall_ms,
        .version = presence->version,
        .status = (uint8_t)presence->status,
        .cause = (uint8_t)cause,
    };
}

void memory_history_forget(struct memory_history *history, struct slice user_id)
{
    uint64_t hash = hash_key_hash(&history->key, user_id);
    for (size_t i = 0; i < MEMORY_HISTORY_ENTRIES; i++)
        if (history->entries[i].user_hash == hash)
            history->entries[i].user_hash = 0;
}

/* Reads back from the newest entry and then reverses, so that the oldest are left out if there are too many. */
size_t memory_history_of(const struct memory_history *history, struct slice user_id,
                         struct state_history *out, size_t max)
{
    uint64_t hash = hash_key_hash(&history->key, user_id);
    size_t kept = history->next < MEMORY_HISTORY_ENTRIES ? history->next : MEMORY_HISTORY_ENTRIES;
    size_t count = 0;
    for (size_t back = 1; back <= kept && count < max; back++) {
        const struct memory_history_entry *entry =
            &history->entries[(history->next - back) % MEMORY_HISTORY_ENTRIES];
        if (entry->user_hash == hash)
            out[count++] = (struct state_history){entry->at_ms, entry->status, entry->version,
                                                  CAUSE_NAMES[entry->cause]};
    }
    for (size_t i = 0; i < count / 2; i++) {
        struct state_history swapped = out[i];
        out[i] = out[count - 1 - i];
        out[count - 1 - i] = swapped;
    }
    return count;
}
