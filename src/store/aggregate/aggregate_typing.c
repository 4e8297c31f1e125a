#include "base/container.h"
#include "store/aggregate/aggregate_forward.h"
#include "store/aggregate/aggregate_stores.h"

#include <stdlib.h>

struct aggregate_typing {
    struct typing_store store;
    struct aggregate_client *client;
};

static void complete_start(const struct aggregate_forwarded *forwarded,
                           const union aggregate_outcome *outcome)
{
    struct typing_outcome nothing = {0};
    ((typing_start_done)forwarded->done)(forwarded->arg,
                                         outcome ? outcome->status : forwarded->status,
                                         outcome ? &outcome->typing_start.outcome : &nothing);
}

static void complete_stop(const struct aggregate_forwarded *forwarded,
                          const union aggregate_outcome *outcome)
{
    ((typing_stop_done)forwarded->done)(forwarded->arg,
                                        outcome ? outcome->status : forwarded->status,
                                        outcome && outcome->typing_stop.stopped);
}

static void complete_read(const struct aggregate_forwarded *forwarded,
                          const union aggregate_outcome *outcome)
{
    ((typing_users_done)forwarded->done)(
        forwarded->arg, outcome ? outcome->status : forwarded->status,
        outcome ? outcome->typing_users.items : NULL, outcome ? outcome->typing_users.count : 0);
}

static void forward_typing(struct typing_store *store, enum aggregate_operation operation,
                           const union aggregate_arguments *arguments, aggregate_complete complete,
                           aggregate_any_done done, void *arg)
{
    struct aggregate_typing *typing = CONTAINER_OF(store, struct aggregate_typing, store);
    aggregate_forward(typing->client, arguments->typing.chat_id, operation, arguments, SLICE_NONE,
                      complete, done, arg);
}

static void aggregate_typing_start(struct typing_store *store, struct slice chat_id,
                                   struct slice user_id, const struct ulid *conn_id,
                                   typing_start_done done, void *arg)
{
    forward_typing(store, AGGREGATE_TYPING_START,
                   &(union aggregate_arguments){.typing = {.chat_id = chat_id,
                                                           .user_id = user_id,
                                                           .has_conn = true,
                                                           .conn_id = *conn_id}},
                   complete_start, (aggregate_any_done)done, arg);
}

static void aggregate_typing_stop(struct typing_store *store, struct slice chat_id,
                                  struct slice user_id, const struct ulid *conn_id,
                                  typing_stop_done done, void *arg)
{
    union aggregate_arguments arguments = {
        .typing = {.chat_id = chat_id, .user_id = user_id, .has_conn = conn_id != NULL}};
    if (conn_id)
        arguments.typing.conn_id = *conn_id;
    forward_typing(store, AGGREGATE_TYPING_STOP, &arguments, complete_stop,
                   (aggregate_any_done)done, arg);
}

static void aggregate_typing_read(struct typing_store *store, struct slice chat_id, size_t max,
                                  typing_users_done done, void *arg)
{
    forward_typing(store, AGGREGATE_TYPING_READ,
                   &(union aggregate_arguments){.typing = {.chat_id = chat_id, .max = max}},
                   complete_read, (aggregate_any_done)done, arg);
}

static void aggregate_typing_free(struct typing_store *store)
{
    free(CONTAINER_OF(store, struct aggregate_typing, store));
}

static const struct typing_store_operations OPERATIONS = {
    .start = aggregate_typing_start,
    .stop = aggregate_typing_stop,
    .read = aggregate_typing_read,
    .free = aggregate_typing_free,
};

struct typing_store *aggregate_typing_make(struct aggregate_client *client)
{
    struct aggregate_typing *typing = calloc(1, sizeof(*typing));
    if (!typing)
        return NULL;
    typing->store.operations = &OPERATIONS;
    typing->client = client;
    return &typing->store;
}
