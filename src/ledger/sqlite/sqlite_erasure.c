/*
 * Erasing what a user has left (ledger_erasure.h). The rows of sent_counts name a sender's messages of a chat; a slice deletes
 * those of the messages that it has made tombstones, so that what remains is what is left to do.
 */
#include "ledger/ledger_erasure.h"
#include "ledger/sqlite/sqlite_operations.h"

#define NEXT_SENT                                                                                  \
    "(SELECT sequence FROM sent_counts WHERE chat_id = ?1 AND sender = ?2 "                        \
    " ORDER BY sequence LIMIT ?3)"

static int run_erasure(struct database *database, const struct ledger_request *request,
                       const char *sql)
{
    struct query query =
        query_open_texts(database, sql, request->input.chat, request->input.user, SLICE_NONE);
    query_bind_int(&query, LEDGER_ERASED_MESSAGES_MAX);
    return query_run(&query);
}

/* A client_message_id is free again; a control character keeps its place from those of clients. */
static int erase_next_messages(struct database *database, const struct ledger_request *request)
{
    static const char MAKE_TOMBSTONES[] =
        "UPDATE messages SET body = '', client_message_id = char(1) || sequence "
        "WHERE chat_id = ?1 AND sender = ?2 AND sequence IN " NEXT_SENT;
    static const char DELETE_UNPUBLISHED[] =
        "DELETE FROM outbox WHERE chat_id = ?1 AND sequence IN " NEXT_SENT;
    static const char DELETE_SENT[] =
        "DELETE FROM sent_counts WHERE chat_id = ?1 AND sender = ?2 AND sequence IN " NEXT_SENT;
    run_erasure(database, request, MAKE_TOMBSTONES);
    run_erasure(database, request, DELETE_UNPUBLISHED);
    return run_erasure(database, request, DELETE_SENT);
}

static void run_on_member(struct database *database, const struct ledger_request *request,
                          const char *sql)
{
    struct query query =
        query_open_texts(database, sql, request->input.chat, request->input.user, SLICE_NONE);
    query_run(&query);
}

static void leave_direct_chat(struct database *database, const struct ledger_request *request)
{
    static const char DELETE_PAIR[] =
        "DELETE FROM direct_chats WHERE chat_id = ?1 AND (lesser, greater) IN ("
        "  SELECT min(a.user_id, b.user_id), max(a.user_id, b.user_id) FROM chat_members a "
        "  JOIN chat_members b ON b.chat_id = a.chat_id AND b.user_id <> a.user_id "
        "  WHERE a.chat_id = ?1 AND a.user_id = ?2)";
    static const char DELETE_MEMBER[] =
        "DELETE FROM chat_members WHERE chat_id = ?1 AND user_id = ?2";
    static const char DELETE_CURSORS[] = "DELETE FROM cursors WHERE chat_id = ?1 AND user_id = ?2";
    run_on_member(database, request, DELETE_PAIR);
    run_on_member(database, request, DELETE_MEMBER);
    run_on_member(database, request, DELETE_CURSORS);
    sqlite_members_count(database, request->input.chat, -1);
}

enum ledger_status sqlite_erasure_messages(struct database *database,
                                           struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    request->outcome.change.changed =
        erase_next_messages(database, request) == LEDGER_ERASED_MESSAGES_MAX;
    if (request->outcome.change.changed)
        return LEDGER_OK;
    sqlite_former_chats_remove(database, input->chat, input->user);
    struct sqlite_standing standing = sqlite_members_standing(database, input->chat, input->user);
    if (standing.is_member && !standing.is_group)
        leave_direct_chat(database, request);
    return LEDGER_OK;
}

enum ledger_status sqlite_erasure_forget(struct database *database, struct ledger_request *request)
{
    static const char DELETE_CALLS[] = "DELETE FROM calls WHERE user_id = ?";
    static const char FORGET_LAST_SEEN[] = "UPDATE users SET last_seen_ms = 0 WHERE user_id = ?";
    struct slice user = request->input.user;
    struct query calls = query_open_texts(database, DELETE_CALLS, user, SLICE_NONE, SLICE_NONE);
    query_run(&calls);
    struct query seen = query_open_texts(database, FORGET_LAST_SEEN, user, SLICE_NONE, SLICE_NONE);
    request->outcome.change.changed = query_run(&seen) > 0;
    return LEDGER_OK;
}
