/*
 * Revocations of users' tokens: the queue "revocations", and "revocation" of each user with the position in it.
 *
 * The counter is the last position that was given and how many revocations there are. Every revocation changes it, under
 * the condition that it is as it was read, so positions appear in their order: who has read up to one misses none.
 */
#include "ledger/dynamodb/dynamodb_operations.h"

#include <stdio.h>

enum {
    MS_PER_SECOND = 1000,
    POSITION_TEXT_MAX = 24,
    TURN_WAIT_MS = 20, /* doubled with each try */
};

struct revoking {
    int64_t last_position;
    int64_t count;
    bool is_revoked; /* the user, already */
    int64_t revoked_at_s;
    int64_t position;
};

static struct dynamodb_key get_counter_key(void)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("counts"), SLICE("revocations"), 0};
}

/* With as many digits as the largest, so that texts have the order of numbers. */
static struct slice write_position(struct dynamodb_task *task, uint64_t position)
{
    char digits[POSITION_TEXT_MAX];
    snprintf(digits, sizeof(digits), "%020llu", (unsigned long long)position);
    return ledger_request_copy(task->request, slice_of(digits));
}

static struct dynamodb_key get_position_key(struct dynamodb_task *task, int64_t position)
{
    return (struct dynamodb_key){DYNAMODB_QUEUES, SLICE("revocations"),
                                 write_position(task, (uint64_t)position), 0};
}

static struct dynamodb_key get_user_key(struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, SLICE("revocation"), 0};
}

static struct revoking get_revoking(struct dynamodb_task *task)
{
    const struct dynamodb_key keys[] = {get_counter_key(), get_user_key(task->request->input.user)};
    struct dynamodb_item items[2];
    dynamodb_get_together(task, keys, 2, items);
    return (struct revoking){
        .last_position = dynamodb_item_number(&items[0], "last_position"),
        .count = dynamodb_item_number(&items[0], "revocation_count"),
        .is_revoked = dynamodb_item_exists(&items[1]),
        .revoked_at_s = dynamodb_item_number(&items[1], "revoked_at_s"),
        .position = dynamodb_item_number(&items[1], "queue_position"),
    };
}

static void write_counter(struct dynamodb_transaction *transaction, const struct revoking *revoking)
{
    dynamodb_transaction_update(
        transaction, get_counter_key(), "SET last_position = :new, revocation_count = :count",
        "attribute_not_exists(last_position) OR last_position = :last",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":new", revoking->last_position + 1),
                        DYNAMODB_NUMBER(":count", revoking->count + !revoking->is_revoked),
                        DYNAMODB_NUMBER(":last", revoking->last_position)));
}

/* The counter's condition covers the user's item, which was read with it and never changes without it. */
static enum dynamodb_outcome store_revocation(struct dynamodb_task *task,
                                              const struct revoking *revoking, int64_t now_s)
{
    struct slice user = task->request->input.user;
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    write_counter(&transaction, revoking);
    dynamodb_transaction_put(
        &transaction, get_position_key(task, revoking->last_position + 1),
        DYNAMODB_VALUES(DYNAMODB_TEXT("user_id", user), DYNAMODB_NUMBER("revoked_at_s", now_s)),
        NULL, DYNAMODB_NO_VALUES);
    dynamodb_transaction_put(
        &transaction, get_user_key(user),
        DYNAMODB_VALUES(DYNAMODB_NUMBER("revoked_at_s", now_s),
                        DYNAMODB_NUMBER("queue_position", revoking->last_position + 1)),
        NULL, DYNAMODB_NO_VALUES);
    if (revoking->is_revoked)
        dynamodb_transaction_delete(&transaction, get_position_key(task, revoking->position), NULL,
                                    DYNAMODB_NO_VALUES);
    return dynamodb_transaction_commit(&transaction);
}

/* A repeated revocation gets a new position, so that gateways that have read the earlier one read it too. */
enum ledger_status dynamodb_revocations_put(struct dynamodb_task *task)
{
    int64_t now_s = task->request->wall_ms / MS_PER_SECOND;
    for (unsigned i = 0; i < DYNAMODB_DECISIONS_MAX; i++) {
        struct revoking revoking = get_revoking(task);
        bool is_later = revoking.is_revoked && revoking.revoked_at_s >= now_s;
        task->request->outcome.revoke.revoked_at_s = is_later ? revoking.revoked_at_s : now_s;
        if (is_later)
            return LEDGER_OK;
        if (!revoking.is_revoked && revoking.count >= LEDGER_REVOCATIONS_MAX)
            return LEDGER_LIMIT;
        if (store_revocation(task, &revoking, now_s) != DYNAMODB_REFUSED)
            return LEDGER_OK;
        dynamodb_client_wait(
            task, (int64_t)random_below(task->client->random, (uint64_t)TURN_WAIT_MS << i));
    }
    return LEDGER_UNAVAILABLE;
}

enum ledger_status dynamodb_revocations_list(struct dynamodb_task *task)
{
    struct ledger_revocations_outcome *outcome = &task->request->outcome.revocations;
    uint32_t limit = task->request->input.limit;
    struct dynamodb_query query = {.table = DYNAMODB_QUEUES,
                                   .partition = SLICE("revocations"),
                                   .after = write_position(task, task->request->input.sequence),
                                   .limit = limit + 1};
    struct ledger_request_array revocations = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        outcome->has_more = revocations.count == limit;
        struct ledger_revocation *revocation =
            outcome->has_more
                ? NULL
                : ledger_request_array_push(task->request, &revocations, sizeof(*revocation));
        if (revocation)
            *revocation = (struct ledger_revocation){
                dynamodb_item_text(&item, "user_id"), dynamodb_item_number(&item, "revoked_at_s"),
                (uint64_t)dynamodb_item_number(&item, "item_position")};
    }
    outcome->revocations = revocations.items;
    outcome->count = revocations.count;
    return LEDGER_OK;
}
