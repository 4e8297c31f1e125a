#include "presence/sight.h"

#include "message/presence.h"
#include "presence/privacy.h"

#include <stdlib.h>
#include <string.h>

/* Those whom the visibility makes a difference for: of one who shows contacts, the contacts; of one
 * who shows everybody, the blocked (blocking ends a contact, so the two sets never meet). */
struct sight {
    struct ledger_settings settings;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
    size_t count;
    struct slice ids[]; /* sorted by bytes; then the bytes themselves */
};

struct sight_reading {
    struct ledger_client *ledger;
    struct ledger_settings settings;
    void (*done)(void *arg, struct sight *sight); /* NULL: nobody waits any more */
    void *arg;
    uint8_t user_id_len;
    char user_id[USER_ID_BYTES_MAX];
};

static struct sight *make_sight(const struct sight_reading *reading, const struct slice *ids,
                                size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += ids[i].len;
    struct sight *sight = malloc(sizeof(*sight) + count * sizeof(*ids) + bytes);
    if (!sight)
        return NULL;
    sight->settings = reading->settings;
    sight->user_id_len = reading->user_id_len;
    memcpy(sight->user_id, reading->user_id, reading->user_id_len);
    sight->count = count;
    char *at = (char *)&sight->ids[count];
    for (size_t i = 0; i < count; i++) {
        sight->ids[i] = (struct slice){at, ids[i].len};
        at = mempcpy(at, ids[i].data, ids[i].len);
    }
    return sight;
}

static void finish(struct sight_reading *reading, struct sight *sight)
{
    if (reading->done)
        reading->done(reading->arg, sight);
    else
        sight_free(&sight);
    free(reading);
}

static void read_ids(void *arg, const struct ledger_ids_outcome *outcome)
{
    struct sight_reading *reading = arg;
    bool ok = outcome->status == LEDGER_OK && reading->done;
    finish(reading, ok ? make_sight(reading, outcome->ids, outcome->count) : NULL);
}

static void read_settings(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct sight_reading *reading = arg;
    struct slice user_id = {reading->user_id, reading->user_id_len};
    reading->settings = outcome->settings;
    if (outcome->status != LEDGER_OK || !reading->done)
        finish(reading, NULL);
    else if (outcome->settings.presence == LEDGER_VISIBLE_EVERYONE)
        ledger_blocks_list(reading->ledger, user_id, read_ids, reading);
    else if (outcome->settings.presence == LEDGER_VISIBLE_CONTACTS_ONLY)
        ledger_contacts_list(reading->ledger, user_id, read_ids, reading);
    else
        finish(reading, make_sight(reading, NULL, 0));
}

struct sight_reading *sight_read(struct ledger_client *ledger, struct slice user_id,
                                 void (*done)(void *arg, struct sight *sight), void *arg)
{
    struct sight_reading *reading = malloc(sizeof(*reading));
    if (!reading)
        return NULL;
    *reading = (struct sight_reading){
        .ledger = ledger, .done = done, .arg = arg, .user_id_len = (uint8_t)user_id.len};
    memcpy(reading->user_id, user_id.data, user_id.len);
    ledger_settings_get(ledger, user_id, read_settings, reading);
    return reading;
}

void sight_forget(struct sight_reading **reading)
{
    if (*reading)
        (*reading)->done = NULL;
    *reading = NULL;
}

static int compare_ids(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    size_t shorter = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->data, b->data, shorter);
    return order ? order : (a->len > b->len) - (a->len < b->len);
}

bool sight_allows(const struct sight *sight, struct slice viewer)
{
    bool named = bsearch(&viewer, sight->ids, sight->count, sizeof(viewer), compare_ids) != NULL;
    bool shows_everybody = sight->settings.presence == LEDGER_VISIBLE_EVERYONE;
    struct ledger_profile profile = {
        .user = {sight->user_id, sight->user_id_len},
        .settings = sight->settings,
        .are_contacts = named && !shows_everybody,
        .blocked_by_target = named && shows_everybody,
    };
    return privacy_decide(viewer, &profile).view != PRIVACY_HIDDEN;
}

void sight_free(struct sight **sight)
{
    free(*sight);
    *sight = NULL;
}
