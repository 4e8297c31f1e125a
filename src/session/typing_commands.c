/* typing_start, typing_stop: confirmed only if the client gave an id; errors are always sent. */
#include "chats/chat_plane.h"
#include "session/dispatch.h"
#include "session/pending_reply.h"
#include "typing/typing_plane.h"

#include <stdlib.h>
#include <string.h>

static void refuse_typing_rate(struct session *session, struct slice id, int64_t retry_after_ms)
{
    metrics_count(session->context->metrics, METRIC_RATE_LIMITED);
    connection_send(&session->connection,
                    &(struct message){.type = MESSAGE_ERROR,
                                      .id = id,
                                      .error = {.code = ERROR_RATE_LIMITED,
                                                .text = "typing is dropped: at most one update per "
                                                        "second and chat, all devices together",
                                                .retry_after_ms = retry_after_ms,
                                                .grace_period_ms = -1}});
}

/* ---- typing_start ---- */

struct typing_start_command {
    struct pending_reply *pending;
    struct slice chat_id;
    char chat_id_bytes[CHAT_ID_BYTES_MAX];
};

/* Typing fails softly: a client cannot act upon an unavailable store. */
static void on_typing_command_done(void *arg, enum typing_verdict verdict, int64_t retry_after_ms)
{
    struct typing_start_command *start = arg;
    struct session *session = start->pending->session;
    if (session && verdict == TYPING_TOO_SOON)
        refuse_typing_rate(session, start->pending->id, retry_after_ms);
    else if (session && start->pending->id.data)
        session_confirm(session, start->pending->id);
    pending_reply_end(&start->pending);
    free(start);
}

static void on_typing_member_checked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct typing_start_command *start = arg;
    struct session *session = start->pending->session;
    if (outcome->status != LEDGER_OK || !session) {
        pending_reply_ledger_error(&start->pending, outcome->status);
        free(start);
    } else if (start->pending->cancelled) {
        on_typing_command_done(start, TYPING_ACCEPTED, 0);
    } else {
        typing_start(session->context->typing, &session->endpoint, &session->conn_id,
                     start->chat_id, on_typing_command_done, start);
    }
}

/* A user who has the chat open is a member; the ledger checks others. */
void handle_typing_start(struct session *session, const struct message *message)
{
    struct typing_plane *typing = session->context->typing;
    int64_t retry_after_ms;
    if (typing_is_too_soon(typing, &session->endpoint, message->chat_id, &retry_after_ms)) {
        if (typing_drop(typing, &session->endpoint, message->chat_id) == TYPING_TOO_SOON)
            refuse_typing_rate(session, message->id, retry_after_ms);
        else if (message->id.data)
            session_confirm(session, message->id);
        return;
    }
    struct pending_reply *pending = pending_reply_open(session, message);
    struct typing_start_command *start = pending ? malloc(sizeof(*start)) : NULL;
    if (!start) {
        if (pending)
            pending_reply_error(&pending, ERROR_SERVER_BUSY, "out of memory");
        return;
    }
    memcpy(start->chat_id_bytes, message->chat_id.data, message->chat_id.len);
    start->chat_id = (struct slice){start->chat_id_bytes, message->chat_id.len};
    start->pending = pending;
    pending->chat_id = start->chat_id;
    if (chat_is_open(&session->endpoint, start->chat_id))
        typing_start(typing, &session->endpoint, &session->conn_id, start->chat_id,
                     on_typing_command_done, start);
    else
        ledger_chat_member_check(session->context->ledger, start->chat_id, session_user(session),
                                 on_typing_member_checked, start);
}

/* ---- typing_stop ---- */

static void on_typing_stop_member_checked(void *arg, const struct ledger_change_outcome *outcome)
{
    struct pending_reply *pending = arg;
    struct session *session = pending->session;
    if (outcome->status != LEDGER_OK) {
        pending_reply_ledger_error(&pending, outcome->status);
        return;
    }
    if (session && pending->id.data)
        session_confirm(session, pending->id);
    pending_reply_end(&pending);
}

/* A stop is never dropped, and takes effect without a check, because it concerns the sender only. It cancels starts
 * that still wait. The answer to a user who neither typed in the chat nor has it open needs the check: it must
 * not differ between a chat of others and one that does not exist. */
void handle_typing_stop(struct session *session, const struct message *message)
{
    struct typing_plane *typing = session->context->typing;
    bool is_member = chat_is_open(&session->endpoint, message->chat_id) ||
                     typing_is_noted(&session->endpoint, message->chat_id);
    pending_reply_cancel(session, MESSAGE_TYPING_START, message->chat_id);
    typing_stop(typing, &session->endpoint, message->chat_id);
    if (is_member) {
        if (message->id.data)
            session_confirm(session, message->id);
        return;
    }
    struct pending_reply *pending = pending_reply_open(session, message);
    if (pending)
        ledger_chat_member_check(session->context->ledger, message->chat_id, session_user(session),
                                 on_typing_stop_member_checked, pending);
}
