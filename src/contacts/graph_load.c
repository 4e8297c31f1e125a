#include "contacts/graph_load.h"

#include "presence/audience.h"

#include <stdlib.h>

struct circle_loading {
    void (*done)(void *arg, const struct circle *circle);
    void *arg;
};

static struct circle_list list_of(struct ledger_id_list list)
{
    return (struct circle_list){list.ids, list.count};
}

static void loaded(void *arg, const struct ledger_circle_outcome *outcome)
{
    struct circle_loading loading = *(struct circle_loading *)arg;
    free(arg);
    struct circle circle = {
        .presence_visibility = (uint8_t)outcome->settings.presence,
        .last_seen_visibility = (uint8_t)outcome->settings.last_seen,
        .contacts = list_of(outcome->contacts),
        .blocked = list_of(outcome->blocked),
        .chats = list_of(outcome->chats),
    };
    loading.done(loading.arg, outcome->status == LEDGER_OK ? &circle : NULL);
}

void circle_load(struct ledger_client *ledger, struct slice user_id,
                 void (*done)(void *arg, const struct circle *circle), void *arg)
{
    struct circle_loading *loading = malloc(sizeof(*loading));
    if (!loading) {
        done(arg, NULL);
        return;
    }
    *loading = (struct circle_loading){done, arg};
    ledger_circle(ledger, user_id, AUDIENCE_CHATS_MAX, loaded, loading);
}
