#include "redis_model/model_tracking.h"

#include "base/container.h"

#include <stdlib.h>

/* A key that at least one session tracks. Most keys that are written to are none. */
struct tracked_key {
    struct table_node node;
    struct slice name;
    size_t sessions;
};

static bool match_tracked_key(const struct table_node *node, struct slice name)
{
    return slice_equal(CONTAINER_OF(node, const struct tracked_key, node)->name, name);
}

void model_tracking_init(struct redis_model *model)
{
    model->tracked_expires_us = INT64_MAX;
    if (!table_init(&model->tracked, model->random, match_tracked_key))
        abort();
}

static struct tracked_key *find_tracked(const struct redis_model *model, struct slice name)
{
    struct table_node *node = model->tracked.size ? table_find(&model->tracked, name) : NULL;
    return node ? CONTAINER_OF(node, struct tracked_key, node) : NULL;
}

static void share_tracked(struct redis_model *model, struct slice name)
{
    struct tracked_key *tracked = find_tracked(model, name);
    if (!tracked) {
        tracked = malloc(sizeof(*tracked) + name.len);
        if (!tracked)
            abort();
        *tracked = (struct tracked_key){.name = {(char *)(tracked + 1), name.len}};
        memcpy(tracked + 1, name.data, name.len);
        table_insert(&model->tracked, &tracked->node, tracked->name);
    }
    tracked->sessions++;
}

/* The name may be the member's own. */
static void drop_tracked(struct redis_session *session, struct model_member *member)
{
    struct tracked_key *tracked = find_tracked(session->model, member->name);
    model_member_remove(session->tracked, member);
    if (--tracked->sessions > 0)
        return;
    table_remove(&session->model->tracked, &tracked->node);
    free(tracked);
}

void model_tracking_stop(struct redis_session *session)
{
    while (session->tracked->count > 0)
        drop_tracked(session, session->tracked->members[session->tracked->count - 1]);
}

static void start_tracking(struct model_call *call, bool starts)
{
    struct redis_session *session = call->session;
    session->tracks = starts;
    session->caches_next = false;
    if (!starts)
        model_tracking_stop(session);
    model_reply_ok(call);
}

bool model_tracking_command(struct model_call *call)
{
    bool is_tracking = model_slice_is_word(call->args[1], "TRACKING") && call->count >= 3;
    bool is_caching = model_slice_is_word(call->args[1], "CACHING") && call->count == 3;
    if (is_tracking && call->resp == 3)
        start_tracking(call, model_slice_is_word(call->args[2], "ON"));
    else if (is_tracking || (is_caching && !call->session->tracks))
        model_reply_error(call, "ERR tracking needs version 3 of the protocol and OPTIN");
    else if (is_caching)
        model_reply_ok(call);
    if (is_caching)
        call->session->caches_next =
            call->session->tracks && model_slice_is_word(call->args[2], "YES");
    return is_tracking || is_caching;
}

static void track_keys(struct model_call *call, struct model_keys keys)
{
    bool added;
    for (size_t i = keys.first; i < keys.first + keys.count; i++) {
        const struct model_key *key = model_key_find(call->model, call->args[i]);
        model_member_add(call->session->tracked, call->args[i], &added);
        if (added)
            share_tracked(call->model, call->args[i]);
        if (key && key->expires_us && key->expires_us < call->model->tracked_expires_us)
            call->model->tracked_expires_us = key->expires_us;
    }
}

static void push_invalidation(struct redis_session *session, struct slice key)
{
    struct model_call call = {.out = &session->pushes, .resp = session->resp};
    buffer_append_text(&session->pushes, ">2\r\n");
    model_reply_bulk(&call, SLICE("invalidate"));
    model_reply_array(&call, 1);
    model_reply_bulk(&call, key);
}

/* What a command causes comes after its own reply. */
void model_tracking_flush(struct redis_model *model)
{
    if (!model->has_pushes)
        return;
    model->has_pushes = false;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        struct redis_session *session = CONTAINER_OF(at, struct redis_session, place);
        buffer_append_slice(&session->out, buffer_slice(&session->pushes));
        buffer_clear(&session->pushes);
    }
}

/* The key's name may be the tracked one, so it is told before it is forgotten. */
void model_tracking_invalidate(struct redis_model *model, struct slice key)
{
    if (!find_tracked(model, key))
        return;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        struct redis_session *session = CONTAINER_OF(at, struct redis_session, place);
        struct model_member *member = model_member_find(session->tracked, key);
        if (!member)
            continue;
        push_invalidation(session, key);
        model->has_pushes = true;
        drop_tracked(session, member);
    }
}

void model_tracking_executed(struct model_call *call, const struct model_command *command)
{
    bool writes = command->flags & MODEL_WRITES;
    bool tracks = call->session && call->session->caches_next;
    if (command->flags & (MODEL_NO_SCRIPT | MODEL_NO_KEYS) ||
        !(tracks || (writes && call->model->tracked.size > 0)))
        return;
    struct model_keys keys = model_call_keys(call, command);
    for (size_t i = keys.first; writes && i < keys.first + keys.count; i++)
        model_tracking_invalidate(call->model, call->args[i]);
    if (tracks && !writes)
        track_keys(call, keys);
    if (tracks)
        call->session->caches_next = false;
}

/* Finding a key removes it if it has expired, which is told. */
static void expire_tracked(struct redis_model *model, const struct redis_session *session)
{
    for (size_t i = session->tracked->count; i-- > 0;) {
        const struct model_key *key =
            i < session->tracked->count ? model_key_find(model, session->tracked->members[i]->name)
                                        : NULL;
        if (key && key->expires_us && key->expires_us < model->tracked_expires_us)
            model->tracked_expires_us = key->expires_us;
    }
}

/* A write that changes when a key expires also ends its tracking, so the earliest time is known. */
void model_tracking_expire(struct redis_model *model)
{
    if (model->now_us < model->tracked_expires_us ||
        model->now_us - model->tracking_expired_us < MODEL_TRACKING_EXPIRE_US)
        return;
    model->tracking_expired_us = model->now_us;
    model->tracked_expires_us = INT64_MAX;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next)
        expire_tracked(model, CONTAINER_OF(at, struct redis_session, place));
}
