/*
 * Drafts: chats with more members than one transaction can store.
 *
 * The members and the users' entries are stored first, by many calls at once, under keys that name the draft; then one transaction
 * makes the chat (dynamodb_chat_create.c). Before that nobody sees any of them, because the chat does not exist.
 *
 * The name of a draft is a digest of the creator and the members. So the same request, repeated after its time was up
 * or its process died, continues its own draft, and two different requests for one id cannot mix: the first to make the
 * chat wins, and what the other stored stays without effect.
 *
 * Whatever an abandoned draft left is removed when a user's list comes across it, a DRAFT_KEPT_MS after it was stored at the
 * earliest. A request that continues a draft stores again whatever is older than DRAFT_CONTINUED_MS, so it never relies on an
 * item that is about to be removed.
 */
#include "base/id_list.h"
#include "ledger/dynamodb/chats/dynamodb_chats.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"

#include <openssl/evp.h>
#include <stdio.h>

enum {
    DRAFT_CONTINUED_MS = 10 * 60 * 1000,
    DRAFT_KEPT_MS = 60 * 60 * 1000,
    DRAFT_BATCH_MEMBERS = DYNAMODB_BATCH_WRITE_MAX / 2,
    DRAFT_CLEARED_MAX = DYNAMODB_TRANSACTION_MAX / 2,
};

/* ---- its name ---- */

static void name_draft(struct dynamodb_task *task, struct dynamodb_new_chat *chat)
{
    struct buffer text = BUFFER_INIT;
    unsigned char digest[EVP_MAX_MD_SIZE];
    char *name = ledger_request_alloc(task->request, DYNAMODB_DRAFT_CHARACTERS + 1);
    buffer_printf(&text, "%zu:%.*s", chat->creator.len, SLICE_FORMAT(chat->creator));
    for (size_t i = 0; i < chat->count; i++)
        buffer_printf(&text, "%zu:%.*s", chat->members[i].len, SLICE_FORMAT(chat->members[i]));
    if (!name || text.failed ||
        EVP_Digest(text.data, text.len, digest, NULL, EVP_sha256(), NULL) != 1) {
        task->failed = true;
    } else {
        for (size_t i = 0; i < DYNAMODB_DRAFT_CHARACTERS / 2; i++)
            snprintf(name + 2 * i, 3, "%02x", digest[i]);
        chat->chat.draft = (struct slice){name, DYNAMODB_DRAFT_CHARACTERS};
    }
    buffer_free(&text);
}

/* ---- storing ---- */

struct staging {
    const struct dynamodb_new_chat *chat;
    const size_t *missing; /* places of the members that are not stored */
    size_t count;
    int64_t since_ms;
};

static void stage_batch(struct dynamodb_task *part, size_t at, void *arg)
{
    const struct staging *staging = arg;
    const struct dynamodb_new_chat *chat = staging->chat;
    struct dynamodb_put_entry entries[2 * DRAFT_BATCH_MEMBERS];
    struct dynamodb_value member_values[DRAFT_BATCH_MEMBERS][2];
    struct dynamodb_value entry_values[DRAFT_BATCH_MEMBERS][2];
    size_t first = at * DRAFT_BATCH_MEMBERS, count = 0;
    for (size_t i = 0; i < DRAFT_BATCH_MEMBERS && first + i < staging->count; i++) {
        size_t place = staging->missing[first + i];
        struct slice user = chat->members[place];
        struct dynamodb_value since = DYNAMODB_NUMBER("since_ms", staging->since_ms);
        member_values[i][0] = entry_values[i][0] = since;
        member_values[i][1] = DYNAMODB_NUMBER("is_admin", slice_equal(user, chat->creator));
        entry_values[i][1] = DYNAMODB_NUMBER("is_accepted", chat->accepted[place]);
        entries[count++] =
            (struct dynamodb_put_entry){.key = dynamodb_chat_member_key(part, &chat->chat, user),
                                        .attributes = {member_values[i], 2}};
        entries[count++] =
            (struct dynamodb_put_entry){.key = dynamodb_chat_entry_key(part, &chat->chat, user),
                                        .attributes = {entry_values[i], 2}};
    }
    dynamodb_put_many(part, entries, count);
}

/* Returns the places of the members that earlier requests have not stored. */
static const size_t *find_missing_members(struct dynamodb_task *task,
                                          const struct dynamodb_new_chat *chat, size_t *count)
{
    const char *prefix = dynamodb_chat_members_prefix(task, &chat->chat);
    struct dynamodb_query query = {.table = DYNAMODB_CHATS,
                                   .partition = chat->chat.id,
                                   .prefix = prefix,
                                   .attributes = "part_key, since_ms"};
    size_t *missing = ledger_request_alloc(task->request, chat->count * sizeof(*missing));
    struct dynamodb_item item;
    size_t at = 0;
    *count = 0;
    while (missing && dynamodb_query_next(task, &query, &item)) {
        struct slice stored = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
        bool is_fresh =
            task->request->wall_ms - dynamodb_item_number(&item, "since_ms") < DRAFT_CONTINUED_MS;
        while (at < chat->count && id_list_compare(chat->members[at], stored) < 0)
            missing[(*count)++] = at++;
        if (at < chat->count && is_fresh && slice_equal(chat->members[at], stored))
            at++;
    }
    while (missing && at < chat->count)
        missing[(*count)++] = at++;
    return missing;
}

void dynamodb_chat_drafts_stage(struct dynamodb_task *task, struct dynamodb_new_chat *chat)
{
    struct staging staging = {.chat = chat, .since_ms = task->request->wall_ms};
    name_draft(task, chat);
    staging.missing = find_missing_members(task, chat, &staging.count);
    dynamodb_parallel(task, (staging.count + DRAFT_BATCH_MEMBERS - 1) / DRAFT_BATCH_MEMBERS,
                      stage_batch, &staging);
}

/* ---- clearing ---- */

void dynamodb_chat_drafts_clear(struct dynamodb_task *task, struct slice user,
                                const struct dynamodb_chat *drafts, const int64_t *since_ms,
                                size_t count)
{
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    for (size_t i = 0; i < count && transaction.count < 2 * DRAFT_CLEARED_MAX; i++) {
        struct dynamodb_values since = DYNAMODB_VALUES(DYNAMODB_NUMBER(":since", since_ms[i]));
        if (task->request->wall_ms - since_ms[i] < DRAFT_KEPT_MS)
            continue;
        dynamodb_transaction_delete(&transaction, dynamodb_chat_entry_key(task, &drafts[i], user),
                                    "since_ms = :since", since);
        dynamodb_transaction_delete(&transaction, dynamodb_chat_member_key(task, &drafts[i], user),
                                    NULL, DYNAMODB_NO_VALUES);
    }
    if (transaction.count > 0)
        dynamodb_transaction_commit(&transaction);
    task->failed = task->late; /* the list that came across them does not need their removal */
}
