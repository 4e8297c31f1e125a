#include "ledger/ledger_request.h"

#define TEXT(name, text) [LEDGER_EVENT_##name] = (text),
static const char *const type_names[LEDGER_EVENT_TYPE_COUNT] = {LEDGER_EVENT_TYPES(TEXT)};
#undef TEXT

const char *ledger_event_type_name(enum ledger_event_type type)
{
    return type_names[type];
}

bool ledger_event_type_parse(struct slice name, enum ledger_event_type *type)
{
    for (int i = 0; i < LEDGER_EVENT_TYPE_COUNT; i++)
        if (slice_is(name, type_names[i])) {
            *type = (enum ledger_event_type)i;
            return true;
        }
    return false;
}

void ledger_events_list(struct ledger_client *client, struct slice queue, uint32_t limit,
                        ledger_events_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_EVENTS_LIST, arg);
    request->done.events = done;
    request->input.id = ledger_request_id(request, queue);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

static struct ledger_request *make_positions_request(struct ledger_client *client,
                                                     enum ledger_operation operation,
                                                     struct slice queue,
                                                     const struct slice *positions, size_t count,
                                                     ledger_change_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, operation, arg);
    request->done.change = done;
    request->input.id = ledger_request_id(request, queue);
    request->input.ids = ledger_request_ids(request, positions, count, LEDGER_PAGE_MAX);
    request->input.id_count = count;
    return request;
}

void ledger_events_remove(struct ledger_client *client, struct slice queue,
                          const struct slice *positions, size_t count, ledger_change_done done,
                          void *arg)
{
    ledger_request_submit(
        make_positions_request(client, LEDGER_EVENTS_REMOVE, queue, positions, count, done, arg));
}

void ledger_events_bury(struct ledger_client *client, struct slice queue,
                        const struct slice *positions, size_t count, struct slice reason,
                        ledger_change_done done, void *arg)
{
    struct ledger_request *request =
        make_positions_request(client, LEDGER_EVENTS_BURY, queue, positions, count, done, arg);
    request->input.text =
        ledger_request_copy(request, slice_first(reason, LEDGER_DEAD_LETTER_REASON_BYTES_MAX));
    ledger_request_submit(request);
}

void ledger_dead_events_list(struct ledger_client *client, struct slice after_queue,
                             struct slice after_position, uint32_t limit, ledger_events_done done,
                             void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_DEAD_EVENTS_LIST, arg);
    request->done.events = done;
    request->input.id = ledger_request_optional_id(request, after_queue);
    request->input.after = ledger_request_optional_id(request, after_position);
    request->input.limit = ledger_request_limit(limit);
    ledger_request_submit(request);
}

void ledger_dead_events_replay(struct ledger_client *client, struct slice queue,
                               const struct slice *positions, size_t count, ledger_change_done done,
                               void *arg)
{
    ledger_request_submit(make_positions_request(client, LEDGER_DEAD_EVENTS_REPLAY, queue,
                                                 positions, count, done, arg));
}

void ledger_event_queue_get(struct ledger_client *client, struct slice queue,
                            ledger_event_queue_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_EVENT_QUEUE_GET, arg);
    request->done.event_queue = done;
    request->input.id = ledger_request_id(request, queue);
    ledger_request_submit(request);
}

void ledger_event_lease(struct ledger_client *client, struct slice queue, struct slice holder,
                        uint64_t seen_version, ledger_event_queue_done done, void *arg)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_EVENT_LEASE, arg);
    request->done.event_queue = done;
    request->input.id = ledger_request_id(request, queue);
    request->input.device = ledger_request_id(request, holder);
    request->input.sequence = seen_version;
    ledger_request_submit(request);
}
