/* open_chat, close_chat */
#include "session/chat_commands.h"

#include "base/container.h"
#include "chats/chat_plane.h"
#include "presence/presence_query.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The presences in one snapshot; a client reads those of other members with query_presence. */
enum {
    SNAPSHOT_PRESENCES_MAX = 100,
    SNAPSHOT_TYPING_MAX = TYPING_VIEW_SHOWN_MAX,
    SNAPSHOT_USERS_MAX = SNAPSHOT_PRESENCES_MAX + SNAPSHOT_TYPING_MAX,
};

static_assert((int)SNAPSHOT_TYPING_MAX <= (int)TYPING_READ_MAX,
              "the store returns no more at a time");
static_assert((int)SNAPSHOT_TYPING_MAX <= (int)SNAPSHOT_PRESENCES_MAX,
              "all typing users fit into the snapshot");

/*
 * A chat being opened, step by step:
 *
 *   subscribed (unconfirmed) ──► chat read, membership confirmed ──► typing users read ──► presences read
 *        ──► chat_snapshot sent
 *
 * The presence query includes the typing users, because it decides which of them the viewer may see.
 */
struct chat_opening {
    struct pending_reply *pending;
    struct slice chat_id;
    int64_t latest_sequence;
    struct slice members[SNAPSHOT_PRESENCES_MAX];
    size_t member_count;
    struct slice users[SNAPSHOT_USERS_MAX]; /* to query: typing users, then other members */
    bool shows_typing[SNAPSHOT_USERS_MAX];  /* to the viewer */
    size_t typing_count;
    size_t count;
    size_t text_len;
    char text[CHAT_ID_BYTES_MAX + SNAPSHOT_USERS_MAX * USER_ID_BYTES_MAX];
};

static struct slice keep_chat_opening_id(struct chat_opening *opening, struct slice id)
{
    char *at = opening->text + opening->text_len;
    memcpy(at, id.data, id.len);
    opening->text_len += id.len;
    return (struct slice){at, id.len};
}

static void refuse_chat_opening(struct chat_opening *opening, enum error_code code,
                                const char *text)
{
    pending_reply_error(&opening->pending, code, text);
    free(opening);
}

/* ---- presences ---- */

static void on_member_views_decided(void *arg, const struct slice *users,
                                    const struct privacy_decision *decisions, size_t count)
{
    (void)users;
    struct chat_opening *opening = arg;
    for (size_t i = 0; i < count; i++)
        opening->shows_typing[i] = decisions[i].shows_typing;
}

/* The user's index among the typing users; typing_count: not among them. */
static size_t find_typing_user(const struct chat_opening *opening, struct slice user)
{
    size_t index = 0;
    while (index < opening->typing_count && !slice_equal(opening->users[index], user))
        index++;
    return index;
}

/* Chooses the typing users that the viewer is shown, then the members by id. So neither the order nor the choice reveals that a
 * hidden user is typing. */
static size_t choose_shown_presences(const struct chat_opening *opening,
                                     const struct presence *presences,
                                     struct presence shown[SNAPSHOT_PRESENCES_MAX])
{
    size_t count = 0;
    const struct presence *other = presences + opening->typing_count;
    for (size_t i = 0; i < opening->typing_count; i++)
        if (opening->shows_typing[i])
            shown[count++] = presences[i];
    for (size_t i = 0; i < opening->member_count && count < SNAPSHOT_PRESENCES_MAX; i++) {
        size_t typing = find_typing_user(opening, opening->members[i]);
        if (typing == opening->typing_count)
            shown[count++] = *other++;
        else if (!opening->shows_typing[typing])
            shown[count++] = presences[typing];
    }
    return count;
}

static void on_member_presences_read(void *arg, bool ok, const struct presence *presences,
                                     size_t count)
{
    (void)count; /* one for each user queried */
    struct chat_opening *opening = arg;
    struct session *session = opening->pending->session;
    if (!session || !ok) {
        if (session)
            chat_give_up(session->context->chats, &session->endpoint, opening->chat_id);
        refuse_chat_opening(opening, ERROR_SERVICE_UNAVAILABLE,
                            "privacy settings cannot be read now");
        return;
    }
    struct presence shown[SNAPSHOT_PRESENCES_MAX];
    size_t shown_count = choose_shown_presences(opening, presences, shown);
    size_t typing_count = 0; /* those shown, except the viewer, moved to the front */
    for (size_t i = 0; i < opening->typing_count; i++)
        if (opening->shows_typing[i] && !slice_equal(opening->users[i], session_user(session)))
            opening->users[typing_count++] = opening->users[i];
    struct message snapshot = {.type = MESSAGE_CHAT_SNAPSHOT,
                               .chat_snapshot = {.chat_id = opening->chat_id,
                                                 .presences = shown,
                                                 .presence_count = shown_count,
                                                 .typing = opening->users,
                                                 .typing_count = typing_count,
                                                 .latest_sequence = opening->latest_sequence}};
    pending_reply_send(&opening->pending, &snapshot);
    free(opening);
}

/* ---- typing users ---- */

static void on_chat_opening_typing_read(void *arg, enum state_status status,
                                        const struct typing_user *users, size_t count)
{
    struct chat_opening *opening = arg;
    struct session *session = opening->pending->session;
    if (!session) {
        refuse_chat_opening(opening, ERROR_SERVICE_UNAVAILABLE, "");
        return;
    }
    struct typing_views *views = &session->context->typing->views;
    for (size_t i = 0; status == STATE_OK && i < count; i++)
        if (typing_view_follow(views, opening->chat_id, users[i].user_id, users[i].left_ms))
            opening->users[opening->typing_count++] =
                keep_chat_opening_id(opening, users[i].user_id);
    opening->count = opening->typing_count;
    for (size_t i = 0; i < opening->member_count; i++)
        if (find_typing_user(opening, opening->members[i]) == opening->typing_count)
            opening->users[opening->count++] = opening->members[i];
    struct presence_query_handler handler = {
        .on_decided = on_member_views_decided, .done = on_member_presences_read, .arg = opening};
    presence_query(session->context->presence, session_user(session), opening->users,
                   opening->count, &handler);
}

/* ---- the chat ---- */

static void on_chat_to_open_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct chat_opening *opening = arg;
    struct session *session = opening->pending->session;
    if (outcome->status != LEDGER_OK || !session) {
        if (session && outcome->status == LEDGER_NOT_FOUND)
            chat_close(session->context->chats, &session->endpoint, opening->chat_id);
        else if (session)
            chat_give_up(session->context->chats, &session->endpoint, opening->chat_id);
        pending_reply_ledger_error(&opening->pending, outcome->status);
        free(opening);
        return;
    }
    if (!chat_confirm(&session->endpoint, opening->chat_id)) {
        pending_reply_ledger_error(&opening->pending, LEDGER_NOT_FOUND); /* closed, or removed */
        free(opening);
        return;
    }
    opening->latest_sequence = (int64_t)outcome->chat.latest_sequence;
    while (opening->member_count < SNAPSHOT_PRESENCES_MAX &&
           opening->member_count < outcome->chat.member_count) {
        size_t index = opening->member_count++;
        opening->members[index] = keep_chat_opening_id(opening, outcome->chat.members[index]);
    }
    typing_store_read(session->context->typing->store, opening->chat_id, SNAPSHOT_TYPING_MAX,
                      on_chat_opening_typing_read, opening);
}

/* ---- the commands ---- */

void handle_open_chat(struct session *session, const struct message *message)
{
    switch (chat_begin(session->context->chats, &session->endpoint, message->chat_id)) {
    case CHAT_BEGUN:
        break;
    case CHAT_TOO_MANY:
        session_error(session, message->id, ERROR_SUBSCRIPTION_LIMIT,
                      "this connection has too many chats open");
        return;
    case CHAT_NO_MEMORY:
        session_error(session, message->id, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    struct chat_opening *opening = calloc(1, sizeof(*opening));
    struct pending_reply *pending = pending_reply_open(session, message);
    if (!opening || !pending) {
        chat_give_up(session->context->chats, &session->endpoint, message->chat_id);
        if (pending)
            pending_reply_error(&pending, ERROR_SERVER_BUSY, "out of memory");
        free(opening);
        return;
    }
    opening->pending = pending;
    opening->chat_id = keep_chat_opening_id(opening, message->chat_id);
    ledger_chat_get(session->context->ledger, opening->chat_id, session_user(session), false,
                    on_chat_to_open_read, opening);
}

void handle_close_chat(struct session *session, const struct message *message)
{
    chat_close(session->context->chats, &session->endpoint, message->chat_id);
    session_confirm(session, message->id);
}

/* Opening a chat that is open changes no subscription, and replies later. */
void chat_commands_refresh(struct session *session)
{
    for (struct subscription *at = session->endpoint.subscriptions; at; at = at->next) {
        struct slice name = {at->topic->name, at->topic->name_len};
        struct message message = {.type = MESSAGE_OPEN_CHAT, .id = SLICE_NONE};
        if (at->view == CHAT_VIEW_OPEN &&
            chat_topic_parse(name, &message.chat_id) == CHAT_TOPIC_PRESENCE)
            handle_open_chat(session, &message);
    }
}

void chat_commands_refresh_chat(struct endpoint *endpoint, struct slice chat_id)
{
    struct session *session = CONTAINER_OF(endpoint, struct session, endpoint);
    handle_open_chat(session, &(struct message){
                                  .type = MESSAGE_OPEN_CHAT, .id = SLICE_NONE, .chat_id = chat_id});
}
