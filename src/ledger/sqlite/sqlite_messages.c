/* Messages: append with the next sequence of the chat, read in both directions, repair the counter. */
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_operations.h"

/* ---- appending ---- */

/* Fills in the outcome from the first send of this client_message_id. Returns false if there was none. */
static bool find_first_send(struct database *database, struct ledger_request *request)
{
    static const char SELECT_FIRST_SEND[] =
        "SELECT message_id, sequence, sent_at_ms, body, NOT EXISTS "
        "  (SELECT 1 FROM outbox o WHERE o.chat_id = m.chat_id AND o.sequence = m.sequence) "
        "FROM messages m WHERE chat_id = ? AND sender = ? AND client_message_id = ?";
    const struct ledger_request_input *input = &request->input;
    struct ledger_append_outcome *outcome = &request->outcome.append;
    struct query query = query_open_texts(database, SELECT_FIRST_SEND, input->chat, input->user,
                                          input->client_message_id);
    bool found = query_next(&query);
    if (found) {
        outcome->duplicate = true;
        outcome->message_id = ledger_request_copy(request, query_text(&query, 0));
        outcome->sequence = (uint64_t)query_int(&query, 1);
        outcome->sent_at_ms = query_int(&query, 2);
        outcome->body_differs = !slice_equal(query_text(&query, 3), input->text);
        outcome->published = query_int(&query, 4) != 0;
    }
    query_end(&query);
    return found;
}

/* The facts about a chat that an append depends on, read in one query. */
struct chat_counter {
    bool missing;
    int64_t value;
    int64_t highest; /* of the stored messages */
    int64_t members_version;
    int64_t member_count;
    int64_t activity_ms;
    int64_t listed_ms; /* sqlite_activity.h */
    bool has_member;   /* the given user is a member */
    bool accepted;     /* by that member */
};

static struct chat_counter read_chat_counter(struct database *database, struct slice chat,
                                             struct slice user)
{
    static const char SELECT_COUNTER[] =
        "SELECT k.sequence, k.chat_id IS NULL, c.members_version, c.member_count, k.activity_ms, "
        "  k.listed_ms, (SELECT max(m.sequence) FROM messages m WHERE m.chat_id = ?1), "
        "  (SELECT 1 + accepted FROM chat_members WHERE chat_id = ?1 AND user_id = ?2) "
        "FROM chats c LEFT JOIN chat_counters k ON k.chat_id = c.chat_id WHERE c.chat_id = ?1";
    struct chat_counter counter = {.missing = true};
    struct query query = query_open_texts(database, SELECT_COUNTER, chat, user, SLICE_NONE);
    if (query_next(&query)) {
        counter.value = query_int(&query, 0);
        counter.missing = query_int(&query, 1) != 0;
        counter.members_version = query_int(&query, 2);
        counter.member_count = query_int(&query, 3);
        counter.activity_ms = query_int(&query, 4);
        counter.listed_ms = query_int(&query, 5);
        counter.highest = query_int(&query, 6);
        counter.has_member = query_int(&query, 7) > 0;
        counter.accepted = query_int(&query, 7) > 1;
    }
    query_end(&query);
    return counter;
}

/* A counter that is behind would reuse a sequence; one that is ahead would skip sequences. */
static bool is_chat_halted(const struct chat_counter *counter)
{
    return counter->missing || counter->value != counter->highest;
}

/* Refuses a message of a halted chat, except one that was stored before. */
static enum ledger_status append_to_halted_chat(struct database *database,
                                                struct ledger_request *request,
                                                const struct chat_counter *counter)
{
    if (find_first_send(database, request))
        return LEDGER_OK;
    request->sequence_taken = !counter->missing && counter->value < counter->highest;
    return LEDGER_HALTED;
}

/* Returns false when the sender has used this client_message_id before. A sequence in use is a failure
 * of the database. */
static bool insert_message_row(struct database *database, const struct ledger_request *request,
                               int64_t sequence)
{
    static const char INSERT_MESSAGE[] =
        "INSERT INTO messages (chat_id, message_id, sender, client_message_id, body, sequence, "
        "sent_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (chat_id, sender, client_message_id) DO NOTHING";
    const struct ledger_request_input *input = &request->input;
    struct query query =
        query_open_texts(database, INSERT_MESSAGE, input->chat, input->id, input->user);
    query_bind(&query, input->client_message_id);
    query_bind(&query, input->text);
    query_bind_int(&query, sequence);
    query_bind_int(&query, request->wall_ms);
    return query_run(&query) > 0;
}

/* Moves the chat to the top of its members' lists, and makes the sender accept it. */
static void note_chat_activity(struct database *database, const struct ledger_request *request,
                               const struct chat_counter *counter)
{
    static const char UPDATE_COUNTER[] =
        "UPDATE chat_counters SET sequence = ?2, activity_ms = ?3, listed_ms = ?4 WHERE chat_id = ?1";
    static const char ACCEPT_CHAT[] =
        "UPDATE chat_members SET accepted = 1 WHERE chat_id = ? AND user_id = ?";
    const struct ledger_request_input *input = &request->input;
    int64_t activity_ms =
        request->wall_ms > counter->activity_ms ? request->wall_ms : counter->activity_ms;
    int64_t listed_ms =
        sqlite_activity_raise(database, input->chat, counter->listed_ms, activity_ms);
    struct query update =
        query_open_texts(database, UPDATE_COUNTER, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&update, counter->value + 1);
    query_bind_int(&update, activity_ms);
    query_bind_int(&update, listed_ms);
    query_run(&update);
    if (counter->accepted)
        return;
    struct query accept =
        query_open_texts(database, ACCEPT_CHAT, input->chat, input->user, SLICE_NONE);
    query_run(&accept);
}

static void insert_outbox_row(struct database *database, struct slice chat, int64_t sequence)
{
    static const char INSERT_OUTBOX[] = "INSERT INTO outbox (chat_id, sequence) VALUES (?, ?)";
    struct query query = query_open_texts(database, INSERT_OUTBOX, chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, sequence);
    query_run(&query);
}

/* Most messages are new, so the insert itself detects a duplicate. In a chat of two, a block stops both from
 * writing; in a larger chat they write to everyone. */
enum ledger_status sqlite_messages_append(struct database *database, struct ledger_request *request)
{
    static const char INSERT_SENT_COUNT[] =
        "INSERT INTO sent_counts (chat_id, sender, sequence, sent) VALUES (?1, ?2, ?3, 1 + coalesce("
        "  (SELECT sent FROM sent_counts WHERE chat_id = ?1 AND sender = ?2 "
        "   ORDER BY sequence DESC LIMIT 1), 0))";
    const struct ledger_request_input *input = &request->input;
    struct chat_counter counter = read_chat_counter(database, input->chat, input->user);
    bool by_application = slice_equal(input->user, LEDGER_APPLICATION);
    if (by_application ? counter.members_version == 0 : !counter.has_member)
        return LEDGER_NOT_FOUND;
    if (is_chat_halted(&counter))
        return append_to_halted_chat(database, request, &counter);
    if (counter.member_count == 2 && sqlite_members_have_block(database, input->chat, input->user))
        return find_first_send(database, request) ? LEDGER_OK : LEDGER_FORBIDDEN;
    int64_t sequence = counter.value + 1;
    if (!insert_message_row(database, request, sequence)) {
        find_first_send(database, request);
        return LEDGER_OK;
    }
    note_chat_activity(database, request, &counter);
    if (!input->skips_outbox)
        insert_outbox_row(database, input->chat, sequence);
    struct query sent =
        query_open_texts(database, INSERT_SENT_COUNT, input->chat, input->user, SLICE_NONE);
    query_bind_int(&sent, sequence);
    query_run(&sent);
    request->outcome.append =
        (struct ledger_append_outcome){.message_id = input->id,
                                       .sequence = (uint64_t)sequence,
                                       .sent_at_ms = request->wall_ms,
                                       .members_version = (uint64_t)counter.members_version};
    return LEDGER_OK;
}

/* The body goes; what was not published yet never is. */
enum ledger_status sqlite_messages_delete(struct database *database, struct ledger_request *request)
{
    static const char SELECT_MESSAGE[] =
        "SELECT body <> '' FROM messages WHERE chat_id = ?1 AND sequence = ?2";
    static const char CLEAR_BODY[] =
        "UPDATE messages SET body = '' WHERE chat_id = ?1 AND sequence = ?2";
    static const char DELETE_OUTBOX[] = "DELETE FROM outbox WHERE chat_id = ?1 AND sequence = ?2";
    static const char *const CHANGES[] = {CLEAR_BODY, DELETE_OUTBOX};
    const struct ledger_request_input *input = &request->input;
    struct query found =
        query_open_texts(database, SELECT_MESSAGE, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&found, (int64_t)input->sequence);
    bool exists = query_next(&found);
    request->outcome.change.changed = exists && query_int(&found, 0) != 0;
    query_end(&found);
    for (size_t i = 0; request->outcome.change.changed && i < 2; i++) {
        struct query query =
            query_open_texts(database, CHANGES[i], input->chat, SLICE_NONE, SLICE_NONE);
        query_bind_int(&query, (int64_t)input->sequence);
        query_run(&query);
    }
    return exists ? LEDGER_OK : LEDGER_NOT_FOUND;
}

enum ledger_status sqlite_messages_repair(struct database *database, struct ledger_request *request)
{
    static const char UPSERT_COUNTER[] =
        "INSERT INTO chat_counters (chat_id, sequence) VALUES (?1, ?2) "
        "ON CONFLICT (chat_id) DO UPDATE SET sequence = ?2";
    struct slice chat = request->input.chat;
    enum ledger_status status = sqlite_members_access(database, chat, SLICE_NONE);
    if (status != LEDGER_OK)
        return status;
    struct chat_counter counter = read_chat_counter(database, chat, SLICE_NONE);
    request->outcome.repair =
        (struct ledger_repair_outcome){.counter_missing = counter.missing,
                                       .needed = is_chat_halted(&counter),
                                       .counter = (uint64_t)counter.value,
                                       .highest_sequence = (uint64_t)counter.highest};
    if (request->input.apply && is_chat_halted(&counter)) {
        struct query query =
            query_open_texts(database, UPSERT_COUNTER, chat, SLICE_NONE, SLICE_NONE);
        query_bind_int(&query, counter.highest);
        query_run(&query);
    }
    return LEDGER_OK;
}

/* ---- reading ---- */

/* Selects one row more than the limit, to find out whether there is a next page. */
void sqlite_messages_read_page(struct ledger_request *request, struct query query)
{
    struct ledger_messages_outcome *outcome = &request->outcome.messages;
    struct ledger_request_array messages = {0};
    query_bind_int(&query, (int64_t)request->input.limit + 1);
    while (query_next(&query)) {
        outcome->has_more = messages.count == request->input.limit;
        if (outcome->has_more)
            break;
        struct ledger_message *message =
            ledger_request_array_push(request, &messages, sizeof(*message));
        if (!message)
            continue;
        message->chat = ledger_request_copy(request, query_text(&query, 0));
        message->sequence = (uint64_t)query_int(&query, 1);
        message->id = ledger_request_copy(request, query_text(&query, 2));
        message->sender = ledger_request_copy(request, query_text(&query, 3));
        message->client_message_id = ledger_request_copy(request, query_text(&query, 4));
        message->body = ledger_request_copy(request, query_text(&query, 5));
        message->sent_at_ms = query_int(&query, 6);
    }
    query_end(&query);
    outcome->messages = messages.items;
    outcome->count = messages.count;
}

static enum ledger_status read_message_page(struct database *database,
                                            struct ledger_request *request, const char *sql)
{
    const struct ledger_request_input *input = &request->input;
    enum ledger_status status = sqlite_members_access(database, input->chat, input->user);
    if (status != LEDGER_OK)
        return status;
    struct query query = query_open_texts(database, sql, input->chat, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, (int64_t)input->sequence);
    sqlite_messages_read_page(request, query);
    request->outcome.messages.latest_sequence =
        (uint64_t)read_chat_counter(database, input->chat, SLICE_NONE).highest;
    return LEDGER_OK;
}

enum ledger_status sqlite_messages_after(struct database *database, struct ledger_request *request)
{
    static const char SELECT_AFTER[] =
        "SELECT " SQLITE_MESSAGE_COLUMNS " FROM messages m "
        "WHERE m.chat_id = ? AND m.sequence > ? ORDER BY m.sequence LIMIT ?";
    return read_message_page(database, request, SELECT_AFTER);
}

enum ledger_status sqlite_messages_before(struct database *database, struct ledger_request *request)
{
    static const char SELECT_BEFORE[] =
        "SELECT " SQLITE_MESSAGE_COLUMNS " FROM messages m "
        "WHERE m.chat_id = ? AND m.sequence < ? ORDER BY m.sequence DESC LIMIT ?";
    enum ledger_status status = read_message_page(database, request, SELECT_BEFORE);
    if (status != LEDGER_OK)
        return status;
    size_t count = request->outcome.messages.count;
    struct ledger_message *messages = (struct ledger_message *)request->outcome.messages.messages;
    for (size_t i = 0; i < count / 2; i++) {
        struct ledger_message kept = messages[i];
        messages[i] = messages[count - 1 - i];
        messages[count - 1 - i] = kept;
    }
    return LEDGER_OK;
}
