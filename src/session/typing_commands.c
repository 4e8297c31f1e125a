/* typing_start, typing_stop: answered only where the client gave an id, or something is wrong. */
#include "chats/chat_plane.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"
#include "typing/typing_plane.h"

#include <stdlib.h>
#include <string.h>

static void tell_limited(struct session *session, struct slice id, int64_t retry_after_ms)
{
    metrics_count(session->context->metrics, METRIC_RATE_LIMITED);
    connection_send(&session->connection,
                    &(struct message){.type = MESSAGE_ERROR,
                                      .id = id,
                                      .error = {.code = ERROR_RATE_LIMITED,
                                                .text = "typing is dropped: one update a second "
                                                        "and chat, all devices together",
                                                .retry_after_ms = retry_after_ms,
                                                .grace_period_ms = -1}});
}

static void confirm(struct session *session, struct slice id)
{
    if (id.data)
        connection_send(&session->connection, &(struct message){.type = MESSAGE_OK, .id = id});
}

/* ---- a start under way ---- */

struct start {
    struct pending_reply *request;
    struct slice chat_id;
    char chat_id_bytes[CHAT_ID_BYTES_MAX];
};

/* Typing fails softly: that the store is out of reach is nothing a client could act upon. */
static void started(void *arg, enum typing_verdict verdict, int64_t retry_after_ms)
{
    struct start *start = arg;
    struct session *session = start->request->session;
    if (session && verdict == TYPING_TOO_SOON)
        tell_limited(session, start->request->id, retry_after_ms);
    else if (session)
        confirm(session, start->request->id);
    pending_reply_end(&start->request);
    free(start);
}

static void begin(struct start *start)
{
    struct session *session = start->request->session;
    typing_start(session->context->typing, &session->endpoint, &session->conn_id, start->chat_id,
                 started, start);
}

static void checked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct start *start = arg;
    if (outcome->status != LEDGER_OK || !start->request->session) {
        pending_reply_ledger_error(&start->request, outcome->status);
        free(start);
    } else if (start->request->taken_back) {
        started(start, TYPING_TAKEN, 0);
    } else {
        begin(start);
    }
}

/* Who has the chat open is a member; of others the ledger knows. */
void handle_typing_start(struct session *session, const struct message *message)
{
    struct typing_plane *typing = session->context->typing;
    int64_t retry_after_ms;
    if (typing_is_too_soon(typing, &session->endpoint, message->chat_id, &retry_after_ms)) {
        if (typing_drop(typing, &session->endpoint, message->chat_id) == TYPING_TOO_SOON)
            tell_limited(session, message->id, retry_after_ms);
        else
            confirm(session, message->id);
        return;
    }
    struct pending_reply *request = pending_reply_open(session, message);
    struct start *start = request ? malloc(sizeof(*start)) : NULL;
    if (!start) {
        if (request)
            pending_reply_error(&request, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    memcpy(start->chat_id_bytes, message->chat_id.data, message->chat_id.len);
    start->chat_id = (struct slice){start->chat_id_bytes, message->chat_id.len};
    start->request = request;
    request->about = start->chat_id;
    if (chat_is_open(&session->endpoint, start->chat_id))
        begin(start);
    else
        ledger_chat_member_check(session->context->ledger, start->chat_id, session_user(session),
                                 checked, start);
}

/* Never dropped, and about nobody but the one who sends it: it asks nobody. A start that is not through yet is
 * overtaken by it. */
void handle_typing_stop(struct session *session, const struct message *message)
{
    pending_reply_take_back(session, MESSAGE_TYPING_START, message->chat_id);
    typing_stop(session->context->typing, &session->endpoint, message->chat_id);
    confirm(session, message->id);
}
