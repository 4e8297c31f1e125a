#include "contacts/graph_load.h"

#include "presence/audience.h"

#include <stdlib.h>

struct graph_loading {
    void (*done)(void *arg, const struct social_graph *graph);
    void *arg;
};

static void loaded(void *arg, const struct ledger_graph_outcome *outcome)
{
    struct graph_loading loading = *(struct graph_loading *)arg;
    free(arg);
    struct social_graph graph = {
        .presence_visibility = (uint8_t)outcome->settings.presence,
        .last_seen_visibility = (uint8_t)outcome->settings.last_seen,
        .contacts = outcome->contacts,
        .blocked = outcome->blocked,
        .chats = outcome->chats,
    };
    loading.done(loading.arg, outcome->status == LEDGER_OK ? &graph : NULL);
}

void graph_load(struct ledger_client *ledger, struct slice user_id,
                void (*done)(void *arg, const struct social_graph *graph), void *arg)
{
    struct graph_loading *loading = malloc(sizeof(*loading));
    if (!loading) {
        done(arg, NULL);
        return;
    }
    *loading = (struct graph_loading){done, arg};
    ledger_graph(ledger, user_id, AUDIENCE_CHATS_MAX, loaded, loading);
}
