/* The operations on chats, their members, and calls. */
#include "conformance/ledger_harness_internal.h"

static void add_chat(struct harness *harness, const struct ledger_chat *chat)
{
    harness_add(harness, " %.*s by %.*s (%zu", SLICE_FORMAT(chat->id), SLICE_FORMAT(chat->creator),
                chat->member_count);
    for (size_t i = 0; chat->members && i < chat->member_count; i++)
        harness_add(harness, " %.*s", SLICE_FORMAT(chat->members[i]));
    harness_add(harness, ") %llu/%llu", (unsigned long long)chat->unread,
                (unsigned long long)chat->latest_sequence);
}

static void write_chat(void *arg, const struct ledger_chat_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, "%s", outcome->created ? " created" : "");
    add_chat(arg, &outcome->chat);
}

static void write_chats(void *arg, const struct ledger_chats_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        add_chat(arg, &outcome->chats[i]);
    harness_add(arg, "%s", outcome->has_more ? " more" : "");
}

static void write_calls(void *arg, const struct ledger_calls_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_call *call = &outcome->calls[i];
        harness_add(arg, " %.*s:%.*s>%.*s:%.*s:%lld", SLICE_FORMAT(call->id),
                    SLICE_FORMAT(call->caller), SLICE_FORMAT(call->callee),
                    SLICE_FORMAT(call->reason), (long long)call->ended_at_ms);
    }
}

/* ---- operations ---- */

const char *harness_chat_create(struct harness *harness, const char *chat, const char *creator,
                                const char *members)
{
    struct slice ids[16];
    size_t count = harness_split(members, ids, 16);
    ledger_chat_create(&harness->client, slice_of(chat), slice_of(creator), ids, count, write_chat,
                       harness);
    return harness_line(harness);
}

const char *harness_chat(struct harness *harness, const char *chat, const char *reader)
{
    ledger_chat_get(&harness->client, slice_of(chat), slice_of(reader), write_chat, harness);
    return harness_line(harness);
}

const char *harness_chats(struct harness *harness, const char *user, const char *after,
                          uint32_t limit, bool with_members)
{
    ledger_chats_list(&harness->client, slice_of(user), slice_of(after), limit, with_members,
                      write_chats, harness);
    return harness_line(harness);
}

const char *harness_member(struct harness *harness, const char *chat, const char *user)
{
    ledger_chat_member_check(&harness->client, slice_of(chat), slice_of(user), harness_write_change,
                             harness);
    return harness_line(harness);
}

const char *harness_member_add(struct harness *harness, const char *chat, const char *actor,
                               const char *user)
{
    ledger_chat_member_add(&harness->client, slice_of(chat), slice_of(actor), slice_of(user),
                           harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_member_remove(struct harness *harness, const char *chat, const char *actor,
                                  const char *user)
{
    ledger_chat_member_remove(&harness->client, slice_of(chat), slice_of(actor), slice_of(user),
                              harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_call(struct harness *harness, const char *id, const char *caller,
                         const char *callee, int64_t ended_at_ms)
{
    struct ledger_call call = {.id = slice_of(id),
                               .caller = slice_of(caller),
                               .callee = slice_of(callee),
                               .reason = SLICE("hangup"),
                               .started_at_ms = ended_at_ms - 10,
                               .ended_at_ms = ended_at_ms};
    ledger_call_append(&harness->client, &call, harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_calls(struct harness *harness, const char *user, uint32_t limit)
{
    ledger_calls_list(&harness->client, slice_of(user), limit, write_calls, harness);
    return harness_line(harness);
}
