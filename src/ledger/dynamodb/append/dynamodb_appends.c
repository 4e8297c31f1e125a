#include "ledger/dynamodb/append/dynamodb_appends.h"

#include "base/container.h"
#include "base/table.h"
#include "ledger/dynamodb/append/dynamodb_append.h"
#include "text/utf8.h"

#include <stdlib.h>

/* A chat that is written to, or was lately. */
struct gathered_chat {
    struct table_node node;
    struct list link; /* in `waiting` or `idle`; in none while it runs */
    struct dynamodb_appends *appends;
    struct ledger_request *first; /* messages that wait */
    struct ledger_request **end;
    struct dynamodb_append_chat remembered;
    struct slice id;
    char bytes[];
};

struct dynamodb_appends {
    struct dynamodb_client *client;
    dynamodb_append_done on_done;
    void *arg;
    struct fiber_pool *fibers;
    struct table chats;
    struct list waiting; /* for a fiber */
    struct list idle;    /* the one that was idle longest comes first */
    size_t gathered;     /* messages that were taken and not given back */
    struct loop_task start;
};

static bool has_chat_id(const struct table_node *node, struct slice id)
{
    return slice_equal(CONTAINER_OF(node, struct gathered_chat, node)->id, id);
}

/* ---- giving back ---- */

static void end_append(struct dynamodb_appends *self, struct ledger_request *request)
{
    self->gathered--;
    self->on_done(self->arg, request);
}

static void refuse_append(struct dynamodb_appends *self, struct ledger_request *request,
                          enum ledger_status status)
{
    ledger_request_fail(request, status);
    end_append(self, request);
}

static struct ledger_request *take_gathered(struct gathered_chat *chat)
{
    struct ledger_request *request = chat->first;
    chat->first = request->next;
    if (!chat->first)
        chat->end = &chat->first;
    return request;
}

/* ---- writing ---- */

static void gather_batch(struct gathered_chat *chat, struct dynamodb_append_batch *batch)
{
    batch->count = batch->sender_count = 0;
    while (chat->first) {
        if (atomic_load_explicit(&chat->first->abandoned, memory_order_relaxed))
            refuse_append(chat->appends, take_gathered(chat), LEDGER_TIMEOUT);
        else if (dynamodb_append_batch_add(batch, chat->first))
            take_gathered(chat);
        else
            return;
    }
}

static void write_gathered_batch(struct gathered_chat *chat, struct fiber *fiber)
{
    struct dynamodb_client *client = chat->appends->client;
    struct dynamodb_append_batch batch;
    struct dynamodb_task task = {.client = client,
                                 .fiber = fiber,
                                 .deadline_ms = client->loop->clock.now_ms + LEDGER_TIME_LIMIT_MS};
    if (chat->remembered.rests_until_ms > client->loop->clock.now_ms)
        dynamodb_client_wait(&task, chat->remembered.rests_until_ms - client->loop->clock.now_ms);
    gather_batch(chat, &batch);
    if (batch.count == 0)
        return;
    task.request = batch.entries[0].request;
    dynamodb_append_write(&batch, &task, &chat->remembered);
    dynamodb_task_end(&task);
    for (size_t i = 0; i < batch.count; i++)
        end_append(chat->appends, batch.entries[i].request);
}

static void free_gathered_chat(struct gathered_chat *chat)
{
    list_remove(&chat->link);
    table_remove(&chat->appends->chats, &chat->node);
    dynamodb_append_chat_forget(&chat->remembered);
    free(chat);
}

static void rest_chat(struct gathered_chat *chat)
{
    struct dynamodb_appends *self = chat->appends;
    list_append(&self->idle, &chat->link);
    if (self->chats.size > DYNAMODB_APPENDS_CHATS_MAX)
        free_gathered_chat(CONTAINER_OF(self->idle.next, struct gathered_chat, link));
}

static void run_gathered_chat(struct fiber *fiber, void *arg)
{
    struct gathered_chat *chat = arg;
    struct dynamodb_appends *self = chat->appends;
    while (chat->first) {
        write_gathered_batch(chat, fiber);
        if (!list_empty(&self->waiting))
            break;
    }
    if (chat->first)
        list_append(&self->waiting, &chat->link);
    else
        rest_chat(chat);
    loop_defer(self->client->loop, &self->start);
}

/* Fibers start at the end of the turn, when all messages that came in it are gathered. */
static void run_appends_start(struct loop_task *task)
{
    struct dynamodb_appends *self = CONTAINER_OF(task, struct dynamodb_appends, start);
    while (!list_empty(&self->waiting) && fiber_pool_has_free(self->fibers)) {
        struct gathered_chat *chat = CONTAINER_OF(self->waiting.next, struct gathered_chat, link);
        list_remove(&chat->link);
        if (fiber_start(self->fibers, run_gathered_chat, chat))
            continue;
        while (chat->first)
            refuse_append(self, take_gathered(chat), LEDGER_BUSY);
        rest_chat(chat);
    }
}

/* ---- gathering ---- */

static struct gathered_chat *make_gathered_chat(struct dynamodb_appends *self, struct slice id)
{
    struct gathered_chat *chat = calloc(1, sizeof(*chat) + id.len);
    if (!chat)
        return NULL;
    char *at = chat->bytes;
    chat->appends = self;
    chat->end = &chat->first;
    chat->id = slice_copy_to(&at, id);
    list_init(&chat->link);
    list_append(&self->idle, &chat->link);
    table_insert(&self->chats, &chat->node, chat->id);
    return chat;
}

static struct gathered_chat *get_gathered_chat(struct dynamodb_appends *self, struct slice id)
{
    struct table_node *node = table_find(&self->chats, id);
    return node ? CONTAINER_OF(node, struct gathered_chat, node) : make_gathered_chat(self, id);
}

/* One text that DynamoDB cannot store would make it refuse the whole batch. */
static bool is_storable(const struct ledger_request_input *input)
{
    return utf8_valid(input->chat) && utf8_valid(input->user) &&
           utf8_valid(input->client_message_id) && utf8_valid(input->id) && utf8_valid(input->text);
}

bool dynamodb_appends_is_full(const struct dynamodb_appends *self)
{
    return self->gathered >= DYNAMODB_APPENDS_GATHERED_MAX;
}

void dynamodb_appends_add(struct dynamodb_appends *appends, struct ledger_request *request)
{
    appends->gathered++;
    if (!is_storable(&request->input)) {
        refuse_append(appends, request, LEDGER_INVALID);
        return;
    }
    struct gathered_chat *chat = get_gathered_chat(appends, request->input.chat);
    if (!chat) {
        refuse_append(appends, request, LEDGER_BUSY);
        return;
    }
    bool is_idle = !chat->first && !list_empty(&chat->link);
    request->next = NULL;
    *chat->end = request;
    chat->end = &request->next;
    if (!is_idle)
        return;
    list_remove(&chat->link);
    list_append(&appends->waiting, &chat->link);
    loop_defer(appends->client->loop, &appends->start);
}

/* ---- life ---- */

struct dynamodb_appends *dynamodb_appends_make(struct dynamodb_client *client,
                                               dynamodb_append_done on_done, void *arg)
{
    struct dynamodb_appends *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->client = client;
    self->on_done = on_done;
    self->arg = arg;
    self->start.run = run_appends_start;
    list_init(&self->waiting);
    list_init(&self->idle);
    self->fibers = fiber_pool_make(DYNAMODB_APPENDS_FIBERS_MAX);
    if (self->fibers && table_init(&self->chats, random_u64(client->random), has_chat_id))
        return self;
    fiber_pool_free(&self->fibers);
    free(self);
    return NULL;
}

static void free_idle_chat(struct table_node *node, void *unused)
{
    (void)unused;
    free_gathered_chat(CONTAINER_OF(node, struct gathered_chat, node));
}

void dynamodb_appends_free(struct dynamodb_appends **appends)
{
    struct dynamodb_appends *self = *appends;
    *appends = NULL;
    if (!self)
        return;
    table_each(&self->chats, free_idle_chat, NULL);
    table_free(&self->chats);
    fiber_pool_free(&self->fibers);
    free(self);
}
