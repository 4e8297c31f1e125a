#include "ledger/ledger_request.h"

#include "ledger/refusal.h"

#include <stdlib.h>

/* Most requests hold one or two ids, and thousands may wait at once when all clients reconnect. */
enum { FIRST_CHUNK_BYTES = 96, CHUNK_BYTES = 1024 };

struct ledger_request_chunk {
    struct ledger_request_chunk *next;
    size_t used;
    size_t capacity;
    _Alignas(max_align_t) char bytes[];
};

struct request_operation {
    const char *name;
    bool writes;
    void (*answer)(const struct ledger_request *request);
};

#define ANSWER(name, writes, field)                                                                \
    static void answer_##name(const struct ledger_request *request)                                \
    {                                                                                              \
        request->done.field(request->arg, &request->outcome.field);                                \
    }
LEDGER_OPERATIONS(ANSWER)
#undef ANSWER

#define ROW(name, writes, field) {#name, writes, answer_##name},
static const struct request_operation operations[LEDGER_OPERATION_COUNT] = {LEDGER_OPERATIONS(ROW)};
#undef ROW

struct ledger_request *ledger_request_make(struct ledger_client *client,
                                           enum ledger_operation operation, void *arg)
{
    static _Thread_local struct ledger_request stand_in;
    struct ledger_request *request = calloc(1, sizeof(*request));
    if (!request) {
        request = &stand_in;
        memset(request, 0, sizeof(*request));
        request->stands_in = true;
    }
    request->client = client;
    request->operation = operation;
    request->arg = arg;
    request->wall_ms = client->clock->wall_ms;
    request->deadline_ms = client->clock->now_ms + client->time_limit_ms;
    request->input.queues = client->event_queues;
    request->input.queue_count = client->event_queue_count;
    list_init(&request->unanswered);
    return request;
}

void ledger_request_free(struct ledger_request *request)
{
    struct ledger_request_chunk *chunk = request->chunks;
    while (chunk) {
        struct ledger_request_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
    free(request);
}

void ledger_request_refuse(struct ledger_request *request, enum ledger_status status)
{
    if (request->refused == LEDGER_OK)
        request->refused = status;
}

struct slice ledger_request_id(struct ledger_request *request, struct slice id)
{
    if (id.len == 0 || id.len > LEDGER_ID_BYTES_MAX) {
        ledger_request_refuse(request, LEDGER_INVALID);
        return SLICE_NONE;
    }
    return ledger_request_copy(request, id);
}

struct slice ledger_request_optional_id(struct ledger_request *request, struct slice id)
{
    return id.len ? ledger_request_id(request, id) : SLICE_NONE;
}

const struct slice *ledger_request_ids(struct ledger_request *request, const struct slice *ids,
                                       size_t count, size_t count_max)
{
    if (count > count_max) {
        ledger_request_refuse(request, LEDGER_LIMIT);
        return NULL;
    }
    struct slice *copies = ledger_request_alloc(request, count * sizeof(*copies));
    for (size_t i = 0; copies && i < count; i++)
        copies[i] = ledger_request_id(request, ids[i]);
    return copies;
}

uint32_t ledger_request_limit(uint32_t limit)
{
    return limit == 0 || limit > LEDGER_PAGE_MAX ? LEDGER_PAGE_MAX : limit;
}

void ledger_request_submit(struct ledger_request *request)
{
    struct ledger_client *client = request->client;
    if (request->stands_in) {
        refusal_owe(request);
        return;
    }
    list_append(&client->unanswered, &request->unanswered);
    client->outstanding++;
    if (request->exhausted)
        ledger_request_refuse(request, LEDGER_UNAVAILABLE);
    if (client->closed) { /* the ledger and its metrics may not exist any more */
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        client->post(client->post_arg, request);
        return;
    }
    if (request->refused != LEDGER_OK) {
        ledger_request_fail(request, request->refused);
        ledger_request_finish(request);
        return;
    }
    client->ledger->backend->submit(client->ledger, request);
}

void *ledger_request_alloc(struct ledger_request *request, size_t bytes)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t rounded = (bytes + alignment - 1) / alignment * alignment;
    struct ledger_request_chunk *chunk = request->chunks;
    if (!chunk || chunk->capacity - chunk->used < rounded) {
        size_t usual = chunk ? CHUNK_BYTES : FIRST_CHUNK_BYTES;
        size_t capacity = rounded > usual ? rounded : usual;
        chunk = request->stands_in ? NULL : calloc(1, sizeof(*chunk) + capacity);
        if (!chunk) {
            request->exhausted = true;
            return NULL;
        }
        chunk->capacity = capacity;
        chunk->next = request->chunks;
        request->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used;
    chunk->used += rounded;
    return memory;
}

struct slice ledger_request_copy(struct ledger_request *request, struct slice s)
{
    char *copy = ledger_request_alloc(request, s.len);
    if (!copy)
        return SLICE_NONE;
    if (s.len)
        memcpy(copy, s.data, s.len);
    return (struct slice){copy, s.len};
}

void *ledger_request_array_push(struct ledger_request *request, struct ledger_request_array *array,
                                size_t item_bytes)
{
    if (array->count == array->capacity) {
        size_t capacity = array->capacity ? array->capacity * 2 : 8;
        void *items = ledger_request_alloc(request, capacity * item_bytes);
        if (!items)
            return NULL;
        if (array->count)
            memcpy(items, array->items, array->count * item_bytes);
        array->items = items;
        array->capacity = capacity;
    }
    return memset((char *)array->items + array->count++ * item_bytes, 0, item_bytes);
}

void ledger_request_patch_settings(struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    if (input->set_presence)
        outcome->settings.presence = input->settings.presence;
    if (input->set_last_seen)
        outcome->settings.last_seen = input->settings.last_seen;
    if (input->set_group_adds)
        outcome->settings.group_adds = input->settings.group_adds;
    if (input->set_hides_reads)
        outcome->settings.hides_reads = input->settings.hides_reads;
    if (input->set_display_name)
        outcome->appearance.display_name = input->appearance.display_name;
    if (input->set_avatar_url)
        outcome->appearance.avatar_url = input->appearance.avatar_url;
}

struct slice ledger_request_user(const struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    return input->call ? input->call->caller : input->user;
}

uint64_t ledger_request_cost(const struct ledger_request *request)
{
    return ledger_request_user(request).len ? 1 + request->input.id_count - request->ids_done : 1;
}

/* ':' separates the parts of topics and of ids that clients once made from two user ids. */
bool ledger_request_chat_is_reserved(struct slice chat)
{
    return slice_starts_with(chat, SLICE(LEDGER_CHAT_DIRECT_PREFIX)) ||
           memchr(chat.data, ':', chat.len) != NULL;
}

bool ledger_request_writes(const struct ledger_request *request)
{
    return operations[request->operation].writes;
}

const char *ledger_request_operation_name(enum ledger_operation operation)
{
    return operations[operation].name;
}

void ledger_request_fail(struct ledger_request *request, enum ledger_status status)
{
    memset(&request->outcome, 0, sizeof(request->outcome));
    request->outcome.any.status = status;
}

/* Detaches from the chain all requests of the first request's client, in order. */
static struct ledger_request *detach_requests_of_first_client(struct ledger_request **chain)
{
    const struct ledger_client *client = (*chain)->client;
    struct ledger_request *detached = NULL, **tail = &detached;
    while (*chain) {
        struct ledger_request *request = *chain;
        if (request->client != client) {
            chain = &request->next;
            continue;
        }
        *chain = request->next;
        request->next = NULL;
        *tail = request;
        tail = &request->next;
    }
    return detached;
}

void ledger_request_observe(struct ledger_request *request, enum ledger_status status)
{
    struct ledger *ledger = request->client->ledger;
    if (ledger->backend->observe && request->refused == LEDGER_OK &&
        !atomic_exchange(&request->observed, true))
        ledger->backend->observe(ledger, request, status);
}

static bool has_ledger_answered(enum ledger_status status)
{
    return status != LEDGER_BUSY && status != LEDGER_TIMEOUT && status != LEDGER_UNAVAILABLE;
}

void ledger_request_finish(struct ledger_request *chain)
{
    while (chain) {
        struct ledger_request *own = detach_requests_of_first_client(&chain);
        const struct ledger_client *client = own->client;
        struct ledger_metrics *metrics = &ledger_innermost(client->ledger)->metrics;
        for (struct ledger_request *request = own; request; request = request->next) {
            ledger_count(&metrics->answers[request->outcome.any.status]);
            if (ledger_request_writes(request) && has_ledger_answered(request->outcome.any.status))
                ledger_count(&metrics->writes_done);
            ledger_request_observe(request, request->outcome.any.status);
        }
        client->post(client->post_arg, own);
    }
}

void ledger_request_detach(struct ledger_request *request)
{
    request->client->outstanding--;
    list_remove(&request->unanswered);
}

void ledger_request_answer_status(enum ledger_operation operation,
                                  union ledger_request_completion done, void *arg,
                                  enum ledger_status status)
{
    struct ledger_request bare = {.operation = operation, .done = done, .arg = arg};
    ledger_request_fail(&bare, status);
    ledger_request_answer(&bare);
}

void ledger_request_answer(struct ledger_request *request)
{
    operations[request->operation].answer(request);
}
