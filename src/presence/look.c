#include "presence/look.h"

#include <stdlib.h>
#include <string.h>

/* One allocation: the arrays and the ids' bytes follow the struct. */
struct look {
    struct presence_plane *plane;
    struct look_handler handler;
    struct slice viewer;
    size_t count;
    struct slice *users;
    struct privacy_decision *decisions;
    struct presence *known; /* what the ledger remembers: last seen and version */
};

static struct look *make_look(struct slice viewer, const struct slice *users, size_t count)
{
    size_t bytes = viewer.len;
    for (size_t i = 0; i < count; i++)
        bytes += users[i].len;
    size_t per_user =
        sizeof(struct slice) + sizeof(struct privacy_decision) + sizeof(struct presence);
    struct look *look = malloc(sizeof(*look) + count * per_user + bytes);
    if (!look)
        return NULL;
    look->count = count;
    look->known = (struct presence *)(look + 1);
    look->users = (struct slice *)(look->known + count);
    look->decisions = (struct privacy_decision *)(look->users + count);
    char *at = (char *)(look->decisions + count);
    memcpy(at, viewer.data, viewer.len);
    look->viewer = (struct slice){at, viewer.len};
    at += viewer.len;
    for (size_t i = 0; i < count; i++) {
        memcpy(at, users[i].data, users[i].len);
        look->users[i] = (struct slice){at, users[i].len};
        at += users[i].len;
    }
    return look;
}

static void finish(struct look *look, bool ok, const struct presence *presences)
{
    look->handler.done(look->handler.arg, ok, presences, ok ? look->count : 0);
    free(look);
}

/* A user whom the state store has forgotten may still be remembered by the ledger. */
static struct presence merge(const struct presence *state, const struct presence *ledger)
{
    struct presence merged = *state;
    if (merged.status == PRESENCE_OFFLINE && merged.last_seen_ms == TIME_NONE)
        merged.last_seen_ms = ledger->last_seen_ms;
    if (merged.version < ledger->version)
        merged.version = ledger->version;
    return merged;
}

static void read_state(void *arg, enum state_status status, const struct presence *presences,
                       size_t count)
{
    struct look *look = arg;
    for (size_t i = 0; i < look->count; i++) {
        if (status == STATE_OK && i < count) {
            struct presence merged = merge(&presences[i], &look->known[i]);
            look->known[i] = privacy_apply(&merged, look->decisions[i]);
        } else {
            look->known[i] = presence_hidden(look->users[i], look->decisions[i].reason);
            look->known[i].stale = true;
        }
    }
    finish(look, true, look->known);
}

static void read_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    struct look *look = arg;
    if (outcome->status != LEDGER_OK) {
        finish(look, false, NULL);
        return;
    }
    for (size_t i = 0; i < look->count; i++) {
        const struct ledger_profile *profile = &outcome->profiles[i];
        look->decisions[i] = privacy_decide(look->viewer, profile);
        look->known[i] = (struct presence){
            .last_seen_ms = profile->last_seen_ms ? profile->last_seen_ms : TIME_NONE,
            .version = (int64_t)profile->presence_version,
        };
    }
    if (look->handler.decided)
        look->handler.decided(look->handler.arg, look->users, look->decisions, look->count);
    state_read(look->plane->store, look->users, look->count, read_state, look);
}

void presence_look(struct presence_plane *plane, struct slice viewer, const struct slice *users,
                   size_t count, const struct look_handler *handler)
{
    if (count == 0) {
        handler->done(handler->arg, true, NULL, 0);
        return;
    }
    struct look *look = make_look(viewer, users, count);
    if (!look) {
        handler->done(handler->arg, false, NULL, 0);
        return;
    }
    look->plane = plane;
    look->handler = *handler;
    ledger_profiles(plane->ledger, look->viewer, look->users, count, read_profiles, look);
}
