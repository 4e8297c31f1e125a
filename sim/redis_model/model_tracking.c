#include "redis_model/model_tracking.h"

#include "base/container.h"

static void start_tracking(struct model_call *call, bool starts)
{
    struct redis_session *session = call->session;
    session->tracks = starts;
    session->caches_next = false;
    while (!starts && session->tracked->count > 0) {
        model_member_remove(session->tracked, session->tracked->members[0]);
        call->model->tracked_count--;
    }
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

/* How many arguments from the first on are keys. */
static size_t count_call_keys(const struct model_call *call)
{
    static const char *const ALL[] = {"DEL", "UNLINK", "EXISTS", "MGET", "SINTER"};
    static const char *const NONE[] = {"KEYS", "SCAN"};
    for (size_t i = 0; i < sizeof(ALL) / sizeof(ALL[0]); i++)
        if (model_slice_is_word(call->args[0], ALL[i]))
            return call->count - 1;
    for (size_t i = 0; i < sizeof(NONE) / sizeof(NONE[0]); i++)
        if (model_slice_is_word(call->args[0], NONE[i]))
            return 0;
    return call->count > 1;
}

static void track_keys(struct model_call *call)
{
    bool added;
    for (size_t i = 0; i < count_call_keys(call); i++) {
        model_member_add(call->session->tracked, call->args[i + 1], &added);
        call->model->tracked_count += added;
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
    if (model->tracked_count == 0)
        return;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next) {
        struct redis_session *session = CONTAINER_OF(at, struct redis_session, place);
        struct model_member *member = model_member_find(session->tracked, key);
        if (!member)
            continue;
        push_invalidation(session, key);
        model->has_pushes = true;
        model_member_remove(session->tracked, member);
        model->tracked_count--;
    }
}

void model_tracking_executed(struct model_call *call, const struct model_command *command)
{
    bool has_keys = !(command->flags & MODEL_NO_SCRIPT);
    bool tracks = call->session && call->session->caches_next && has_keys;
    if (command->flags & MODEL_WRITES && has_keys)
        for (size_t i = 0; i < count_call_keys(call) && call->model->tracked_count > 0; i++)
            model_tracking_invalidate(call->model, call->args[i + 1]);
    else if (tracks)
        track_keys(call);
    if (tracks)
        call->session->caches_next = false;
}

/* Finding a key removes it if it has expired. */
static void expire_tracked(struct redis_model *model, const struct redis_session *session)
{
    for (size_t i = session->tracked->count; i-- > 0;)
        if (i < session->tracked->count)
            model_key_find(model, session->tracked->members[i]->name);
}

void model_tracking_expire(struct redis_model *model)
{
    if (model->tracked_count == 0 ||
        model->now_us - model->tracking_expired_us < MODEL_TRACKING_EXPIRE_US)
        return;
    model->tracking_expired_us = model->now_us;
    for (struct list *at = model->sessions.next; at != &model->sessions; at = at->next)
        expire_tracked(model, CONTAINER_OF(at, struct redis_session, place));
}
