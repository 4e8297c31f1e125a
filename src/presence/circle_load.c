#include "presence/circle_load.h"

#include "presence/audience.h"

#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 4 };

struct circle_loading {
    struct circle circle; /* its lists are one allocation each */
    int awaited;
    bool failed;
    void (*done)(void *arg, const struct circle *circle);
    void *arg;
};

static void finish(struct circle_loading *loading)
{
    loading->done(loading->arg, loading->failed ? NULL : &loading->circle);
    free((void *)loading->circle.contacts.ids);
    free((void *)loading->circle.blocked.ids);
    free((void *)loading->circle.chats.ids);
    free(loading);
}

static void answered(struct circle_loading *loading, bool ok)
{
    loading->failed |= !ok;
    if (--loading->awaited == 0)
        finish(loading);
}

/* Copies ids into one allocation, slices first. Element i is at ids + i * stride. */
static bool copy_ids(struct circle_list *out, const struct slice *ids, size_t stride, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += ((const struct slice *)((const char *)ids + i * stride))->len;
    struct slice *copies = malloc(count * sizeof(*copies) + bytes + 1);
    if (!copies)
        return false;
    char *at = (char *)(copies + count);
    for (size_t i = 0; i < count; i++) {
        const struct slice *id = (const struct slice *)((const char *)ids + i * stride);
        copies[i] = (struct slice){at, id->len};
        at = mempcpy(at, id->data, id->len);
    }
    *out = (struct circle_list){copies, count};
    return true;
}

static void read_settings(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct circle_loading *loading = arg;
    loading->circle.presence_visibility = (uint8_t)outcome->settings.presence;
    loading->circle.last_seen_visibility = (uint8_t)outcome->settings.last_seen;
    answered(loading, outcome->status == LEDGER_OK);
}

static void read_contacts(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct circle_loading *loading = arg;
    answered(loading,
             outcome->status == LEDGER_OK && copy_ids(&loading->circle.contacts, outcome->ids,
                                                      sizeof(struct slice), outcome->count));
}

static void read_blocked(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct circle_loading *loading = arg;
    answered(loading,
             outcome->status == LEDGER_OK && copy_ids(&loading->circle.blocked, outcome->ids,
                                                      sizeof(struct slice), outcome->count));
}

static void read_chats(void *arg, const struct ledger_chats_outcome *outcome)
{
    struct circle_loading *loading = arg;
    answered(loading,
             outcome->status == LEDGER_OK &&
                 copy_ids(&loading->circle.chats, outcome->count ? &outcome->chats[0].id : NULL,
                          sizeof(struct ledger_chat), outcome->count));
}

void circle_load(struct ledger_client *ledger, struct slice user_id,
                 void (*done)(void *arg, const struct circle *circle), void *arg)
{
    struct circle_loading *loading = malloc(sizeof(*loading));
    if (!loading) {
        done(arg, NULL);
        return;
    }
    *loading = (struct circle_loading){.awaited = ANSWERS, .done = done, .arg = arg};
    ledger_settings_get(ledger, user_id, read_settings, loading);
    ledger_contacts_list(ledger, user_id, read_contacts, loading);
    ledger_blocks_list(ledger, user_id, read_blocked, loading);
    ledger_chats_list(ledger, user_id, SLICE_NONE, AUDIENCE_CHATS_MAX, false, read_chats, loading);
}
