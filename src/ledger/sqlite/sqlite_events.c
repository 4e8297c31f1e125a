/* Queues of events for the application, and dead letters among them. */
#include "ledger/ledger_event_derive.h"
#include "ledger/sqlite/sqlite_operations.h"

#include <stdio.h>
#include <stdlib.h>

enum { POSITION_TEXT_MAX = 24 };

/* ---- writing ---- */

/* Takes the next position of a queue, and counts its event. */
static int64_t take_event_position(struct database *database, struct slice queue)
{
    static const char TAKE_POSITION[] =
        "INSERT INTO event_queues (queue, last_position, event_count) VALUES (?1, 1, 1) "
        "ON CONFLICT (queue) DO UPDATE SET last_position = last_position + 1, "
        "  event_count = event_count + 1 RETURNING last_position";
    struct query query = query_open_texts(database, TAKE_POSITION, queue, SLICE_NONE, SLICE_NONE);
    int64_t position = query_next(&query) ? query_int(&query, 0) : 0;
    query_end(&query);
    return position;
}

static void count_removed_events(struct database *database, struct slice queue, int64_t removed,
                                 int64_t dropped)
{
    static const char COUNT_REMOVED[] =
        "UPDATE event_queues SET event_count = event_count - ?2, dropped = dropped + ?3 "
        "WHERE queue = ?1";
    struct query query = query_open_texts(database, COUNT_REMOVED, queue, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, removed);
    query_bind_int(&query, dropped);
    query_run(&query);
}

/* Beyond the bound the oldest events give way. */
static void bound_event_queue(struct database *database, const struct ledger_event_queue *queue)
{
    static const char COUNT_SURPLUS[] =
        "SELECT event_count - ?2 FROM event_queues WHERE queue = ?1";
    static const char DELETE_SURPLUS[] =
        "DELETE FROM events WHERE queue = ?1 AND position IN "
        "  (SELECT position FROM events WHERE queue = ?1 ORDER BY position LIMIT ?2)";
    if (!queue->count_max)
        return;
    struct query count =
        query_open_texts(database, COUNT_SURPLUS, queue->name, SLICE_NONE, SLICE_NONE);
    query_bind_int(&count, queue->count_max);
    int64_t surplus = query_next(&count) ? query_int(&count, 0) : 0;
    query_end(&count);
    if (surplus <= 0)
        return;
    struct query query =
        query_open_texts(database, DELETE_SURPLUS, queue->name, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, surplus);
    int64_t removed = query_run(&query);
    count_removed_events(database, queue->name, removed, removed);
}

static void insert_event_row(struct database *database, struct slice queue,
                             const struct ledger_event *event)
{
    static const char INSERT_EVENT[] =
        "INSERT INTO events (queue, type, subject, data, position, time_ms, sequence) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)";
    struct query query =
        query_open_texts(database, INSERT_EVENT, queue,
                         slice_of(ledger_event_type_name(event->type)), event->subject);
    query_bind(&query, event->data);
    query_bind_int(&query, take_event_position(database, queue));
    query_bind_int(&query, event->time_ms);
    query_bind_int(&query, (int64_t)event->sequence);
    query_run(&query);
}

void sqlite_events_derive(struct database *database, struct ledger_request *request)
{
    struct ledger_event events[LEDGER_EVENTS_OF_REQUEST_MAX];
    size_t count = ledger_event_derive(request, events);
    if (count == 0 || request->exhausted)
        return;
    for (size_t i = 0; i < request->input.queue_count; i++) {
        const struct ledger_event_queue *queue = &request->input.queues[i];
        for (size_t j = 0; j < count; j++)
            if (queue->types & (1u << events[j].type))
                insert_event_row(database, queue->name, &events[j]);
        bound_event_queue(database, queue);
    }
}

/* The event is derived from the request like any other. */
enum ledger_status sqlite_events_call(struct database *database, struct ledger_request *request)
{
    (void)database;
    request->outcome.change.changed = true;
    return LEDGER_OK;
}

/* ---- reading ---- */

static struct slice write_event_position(struct ledger_request *request, int64_t position)
{
    char text[POSITION_TEXT_MAX];
    snprintf(text, sizeof(text), "%lld", (long long)position);
    return ledger_request_copy(request, slice_of(text));
}

/* What is no position of this backend is that of no event. */
static int64_t read_event_position(struct slice position)
{
    char text[POSITION_TEXT_MAX] = "0";
    if (position.len < sizeof(text))
        memcpy(text, position.data, position.len);
    return strtoll(text, NULL, 10);
}

/* Reads the columns queue, position, type, subject, time_ms, data, reason, sequence, body. An event of a type that this program does not know, which
 * a newer one wrote, is skipped. */
static void read_event_page(struct ledger_request *request, struct query query, bool is_dead)
{
    struct ledger_events_outcome *outcome = &request->outcome.events;
    struct ledger_request_array events = {0};
    enum ledger_event_type type;
    size_t bytes = 0;
    query_bind_int(&query, (int64_t)request->input.limit + 1);
    while (query_next(&query)) {
        bytes += query_text(&query, 5).len + query_text(&query, 8).len;
        outcome->has_more = events.count == request->input.limit ||
                            (events.count && bytes > LEDGER_EVENTS_PAGE_BYTES_MAX);
        if (outcome->has_more)
            break;
        if (!ledger_event_type_parse(query_text(&query, 2), &type))
            continue;
        struct ledger_event *event = ledger_request_array_push(request, &events, sizeof(*event));
        if (!event)
            continue;
        if (is_dead)
            event->queue = ledger_request_copy(request, query_text(&query, 0));
        event->position = write_event_position(request, query_int(&query, 1));
        event->type = type;
        event->subject = ledger_request_copy(request, query_text(&query, 3));
        event->time_ms = query_int(&query, 4);
        event->data = ledger_request_copy(request, query_text(&query, 5));
        event->reason = ledger_request_copy(request, query_text(&query, 6));
        event->sequence = (uint64_t)query_int(&query, 7);
        event->body = ledger_request_copy(request, query_text(&query, 8));
    }
    query_end(&query);
    outcome->events = events.items;
    outcome->count = events.count;
}

enum ledger_status sqlite_events_list(struct database *database, struct ledger_request *request)
{
    static const char SELECT_EVENTS[] =
        "SELECT e.queue, e.position, e.type, e.subject, e.time_ms, e.data, '', e.sequence, "
        "  coalesce(m.body, '') "
        "FROM events e LEFT JOIN messages m ON m.chat_id = e.subject AND m.sequence = e.sequence "
        "WHERE e.queue = ? ORDER BY e.position LIMIT ?";
    read_event_page(
        request,
        query_open_texts(database, SELECT_EVENTS, request->input.id, SLICE_NONE, SLICE_NONE),
        false);
    return LEDGER_OK;
}

enum ledger_status sqlite_events_list_dead(struct database *database,
                                           struct ledger_request *request)
{
    static const char SELECT_DEAD[] =
        "SELECT queue, position, type, subject, time_ms, data, reason, sequence, '' FROM dead_events "
        "WHERE (queue, position) > (?, ?) ORDER BY queue, position LIMIT ?";
    const struct ledger_request_input *input = &request->input;
    struct slice after = input->id.len ? input->id : SLICE("");
    struct query query = query_open_texts(database, SELECT_DEAD, after, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, input->after.len ? read_event_position(input->after) : 0);
    read_event_page(request, query, true);
    return LEDGER_OK;
}

/* ---- moving ---- */

static int run_on_event(struct database *database, const char *sql, struct slice queue,
                        int64_t position, struct slice text)
{
    struct query query = query_open_texts(database, sql, queue, SLICE_NONE, SLICE_NONE);
    query_bind_int(&query, position);
    if (text.data)
        query_bind(&query, text);
    return query_run(&query);
}

static const char DELETE_EVENT[] = "DELETE FROM events WHERE queue = ?1 AND position = ?2";

enum ledger_status sqlite_events_remove(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    int64_t removed = 0;
    for (size_t i = 0; i < input->id_count; i++)
        removed += run_on_event(database, DELETE_EVENT, input->id,
                                read_event_position(input->ids[i]), SLICE_NONE);
    if (removed)
        count_removed_events(database, input->id, removed, 0);
    return LEDGER_OK;
}

enum ledger_status sqlite_events_bury(struct database *database, struct ledger_request *request)
{
    static const char INSERT_DEAD[] =
        "INSERT OR IGNORE INTO dead_events "
        "  (queue, position, type, subject, time_ms, data, reason, sequence) "
        "SELECT queue, position, type, subject, time_ms, data, ?3, sequence FROM events "
        "WHERE queue = ?1 AND position = ?2";
    static const char DELETE_OLDEST[] = "DELETE FROM dead_events WHERE queue = ?1 AND position <= "
                                        "  (SELECT position FROM dead_events WHERE queue = ?1 "
                                        "   ORDER BY position DESC LIMIT 1 OFFSET ?2)";
    const struct ledger_request_input *input = &request->input;
    struct slice reason = input->text.data ? input->text : SLICE("");
    for (size_t i = 0; i < input->id_count; i++)
        run_on_event(database, INSERT_DEAD, input->id, read_event_position(input->ids[i]), reason);
    run_on_event(database, DELETE_OLDEST, input->id, LEDGER_DEAD_EVENTS_MAX, SLICE_NONE);
    return sqlite_events_remove(database, request);
}

enum ledger_status sqlite_events_replay(struct database *database, struct ledger_request *request)
{
    static const char INSERT_AGAIN[] =
        "INSERT INTO events (queue, position, type, subject, time_ms, data, sequence) "
        "SELECT queue, ?3, type, subject, time_ms, data, sequence FROM dead_events "
        "WHERE queue = ?1 AND position = ?2";
    static const char SELECT_DEAD[] =
        "SELECT 1 FROM dead_events WHERE queue = ?1 AND position = ?2";
    static const char DELETE_DEAD[] = "DELETE FROM dead_events WHERE queue = ?1 AND position = ?2";
    const struct ledger_request_input *input = &request->input;
    for (size_t i = 0; i < input->id_count; i++) {
        int64_t position = read_event_position(input->ids[i]);
        struct query found =
            query_open_texts(database, SELECT_DEAD, input->id, SLICE_NONE, SLICE_NONE);
        query_bind_int(&found, position);
        if (!query_found(&found))
            continue;
        struct query again =
            query_open_texts(database, INSERT_AGAIN, input->id, SLICE_NONE, SLICE_NONE);
        query_bind_int(&again, position);
        query_bind_int(&again, take_event_position(database, input->id));
        query_run(&again);
        run_on_event(database, DELETE_DEAD, input->id, position, SLICE_NONE);
        request->outcome.change.changed = true;
    }
    return LEDGER_OK;
}

/* ---- holding ---- */

enum ledger_status sqlite_events_queue_get(struct database *database,
                                           struct ledger_request *request)
{
    static const char SELECT_QUEUE[] =
        "SELECT holder, lease_version, event_count, dropped FROM event_queues WHERE queue = ?";
    struct ledger_event_queue_outcome *outcome = &request->outcome.event_queue;
    struct query query =
        query_open_texts(database, SELECT_QUEUE, request->input.id, SLICE_NONE, SLICE_NONE);
    if (query_next(&query)) {
        outcome->holder = ledger_request_copy(request, query_text(&query, 0));
        outcome->lease_version = (uint64_t)query_int(&query, 1);
        outcome->event_count = (uint64_t)query_int(&query, 2);
        outcome->dropped = (uint64_t)query_int(&query, 3);
    }
    query_end(&query);
    return LEDGER_OK;
}

enum ledger_status sqlite_events_lease(struct database *database, struct ledger_request *request)
{
    static const char TAKE_LEASE[] =
        "INSERT INTO event_queues (queue, holder, lease_version) VALUES (?1, ?2, 1) "
        "ON CONFLICT (queue) DO UPDATE SET holder = ?2, lease_version = lease_version + 1 "
        "WHERE holder = ?2 OR lease_version = ?3";
    const struct ledger_request_input *input = &request->input;
    struct query query =
        query_open_texts(database, TAKE_LEASE, input->id, input->device, SLICE_NONE);
    query_bind_int(&query, (int64_t)input->sequence);
    query_run(&query);
    return sqlite_events_queue_get(database, request);
}
