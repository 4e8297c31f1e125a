/* The operations on messages, cursors, the outbox and dead letters. */
#include "conformance/ledger_harness_internal.h"

#include <stdio.h>

static void write_append(void *arg, const struct ledger_append_outcome *outcome)
{
    if (harness_begin(arg, outcome->status))
        harness_add(arg, " %llu %.*s%s%s%s", (unsigned long long)outcome->sequence,
                    SLICE_FORMAT(outcome->message_id), outcome->duplicate ? " duplicate" : "",
                    outcome->body_differs ? " differs" : "",
                    outcome->published ? " published" : "");
}

static void write_messages(void *arg, const struct ledger_messages_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_message *message = &outcome->messages[i];
        harness_add(arg, " %.*s#%llu:%.*s:%.*s", SLICE_FORMAT(message->chat),
                    (unsigned long long)message->sequence, SLICE_FORMAT(message->sender),
                    SLICE_FORMAT(message->body));
    }
    harness_add(arg, "%s /%llu", outcome->has_more ? " more" : "",
                (unsigned long long)outcome->latest_sequence);
}

static void write_dead_letters(void *arg, const struct ledger_dead_letters_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        harness_add(arg, " %.*s#%llu:%.*s", SLICE_FORMAT(outcome->letters[i].chat),
                    (unsigned long long)outcome->letters[i].sequence,
                    SLICE_FORMAT(outcome->letters[i].reason));
}

static void write_revoke(void *arg, const struct ledger_revoke_outcome *outcome)
{
    if (harness_begin(arg, outcome->status))
        harness_add(arg, " @%lld", (long long)outcome->revoked_at_s);
}

static void write_revocations(void *arg, const struct ledger_revocations_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        harness_add(arg, " %.*s@%lld", SLICE_FORMAT(outcome->revocations[i].user),
                    (long long)outcome->revocations[i].revoked_at_s);
    harness_add(arg, "%s", outcome->has_more ? " more" : "");
    if (outcome->count)
        ((struct harness *)arg)->last_position = outcome->revocations[outcome->count - 1].position;
}

static void write_repair(void *arg, const struct ledger_repair_outcome *outcome)
{
    if (harness_begin(arg, outcome->status))
        harness_add(arg, "%s%s %llu/%llu", outcome->needed ? " needed" : "",
                    outcome->counter_missing ? " missing" : "",
                    (unsigned long long)outcome->counter,
                    (unsigned long long)outcome->highest_sequence);
}

/* ---- operations ---- */

const char *harness_send(struct harness *harness, const char *chat, const char *sender,
                         const char *client_id, const char *body)
{
    char message_id[64];
    int len = snprintf(message_id, sizeof(message_id), "m-%s", client_id);
    ledger_message_append(&harness->client, slice_of(chat), slice_of(sender), slice_of(client_id),
                          (struct slice){message_id, (size_t)len}, slice_of(body), write_append,
                          harness);
    return harness_line(harness);
}

const char *harness_after(struct harness *harness, const char *chat, const char *reader,
                          uint64_t sequence, uint32_t limit)
{
    ledger_messages_after(&harness->client, slice_of(chat), slice_of(reader), sequence, limit,
                          write_messages, harness);
    return harness_line(harness);
}

const char *harness_before(struct harness *harness, const char *chat, const char *reader,
                           uint64_t sequence, uint32_t limit)
{
    ledger_messages_before(&harness->client, slice_of(chat), slice_of(reader), sequence, limit,
                           write_messages, harness);
    return harness_line(harness);
}

static void write_cursor(void *arg, const struct ledger_cursor_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, "%s", outcome->changed ? " changed" : "");
    if (outcome->read_more)
        harness_add(arg, " read %llu", (unsigned long long)outcome->read_sequence);
    harness_add(arg, "%s", outcome->is_shown ? " shown" : "");
    for (size_t i = 0; i < outcome->hidden_from.count; i++)
        harness_add(arg, " not %.*s", SLICE_FORMAT(outcome->hidden_from.ids[i]));
}

const char *harness_cursor(struct harness *harness, const char *chat, const char *user,
                           const char *device, uint64_t sequence)
{
    ledger_cursor_put(&harness->client, slice_of(chat), slice_of(user), slice_of(device), sequence,
                      write_cursor, harness);
    return harness_line(harness);
}

const char *harness_outbox(struct harness *harness, uint32_t limit)
{
    ledger_outbox_list(&harness->client, limit, write_messages, harness);
    return harness_line(harness);
}

const char *harness_outbox_remove(struct harness *harness, const char *chat, uint64_t sequence,
                                  int64_t sent_at_ms)
{
    struct ledger_position position = {slice_of(chat), sequence, sent_at_ms};
    ledger_outbox_remove(&harness->client, &position, 1, harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_dead_letter_put(struct harness *harness, const char *chat, uint64_t sequence,
                                    const char *reason)
{
    ledger_dead_letter_put(&harness->client, slice_of(chat), sequence, slice_of(reason),
                           harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_revoke(struct harness *harness, const char *user)
{
    ledger_revoke(&harness->client, slice_of(user), write_revoke, harness);
    return harness_line(harness);
}

const char *harness_revocations(struct harness *harness, uint64_t after, uint32_t limit)
{
    ledger_revocations_list(&harness->client, after, limit, write_revocations, harness);
    return harness_line(harness);
}

const char *harness_dead_letters(struct harness *harness)
{
    ledger_dead_letters_list(&harness->client, 0, write_dead_letters, harness);
    return harness_line(harness);
}

const char *harness_replay(struct harness *harness, const char *chat, uint64_t sequence)
{
    ledger_dead_letter_replay(&harness->client, slice_of(chat), sequence, harness_write_change,
                              harness);
    return harness_line(harness);
}

const char *harness_repair(struct harness *harness, const char *chat, bool apply)
{
    ledger_chat_repair(&harness->client, slice_of(chat), apply, write_repair, harness);
    return harness_line(harness);
}

static void write_keys(void *arg, const struct ledger_keys_outcome *outcome)
{
    harness_begin(arg, outcome->status);
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_key *key = &outcome->keys[i];
        harness_add(arg, " %.*s=%.*s(%.*s)%lld/%lld", SLICE_FORMAT(key->name),
                    SLICE_FORMAT(key->hash), SLICE_FORMAT(key->scope),
                    (long long)key->created_at_ms, (long long)key->last_used_ms);
    }
}

const char *harness_key_put(struct harness *harness, const char *name, const char *hash,
                            const char *scope)
{
    ledger_key_put(&harness->client, slice_of(name), slice_of(hash), slice_of(scope),
                   harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_key_delete(struct harness *harness, const char *name)
{
    ledger_key_delete(&harness->client, slice_of(name), harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_key_used(struct harness *harness, const char *name)
{
    ledger_key_used(&harness->client, slice_of(name), harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_keys(struct harness *harness)
{
    ledger_keys_list(&harness->client, write_keys, harness);
    return harness_line(harness);
}

const char *harness_erase(struct harness *harness, const char *chat, const char *user)
{
    ledger_messages_erase(&harness->client, slice_of(chat), slice_of(user), harness_write_change,
                          harness);
    return harness_line(harness);
}

const char *harness_forget(struct harness *harness, const char *user)
{
    ledger_user_forget(&harness->client, slice_of(user), harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_former_chats(struct harness *harness, const char *user, const char *after,
                                 uint32_t limit)
{
    ledger_former_chats_list(&harness->client, slice_of(user),
                             *after ? slice_of(after) : SLICE_NONE, limit, harness_write_ids,
                             harness);
    return harness_line(harness);
}
