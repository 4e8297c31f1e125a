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

static void write_roles(void *arg, const struct ledger_chat_outcome *outcome)
{
    const struct ledger_chat *chat = &outcome->chat;
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, " %s admins:", chat->kind == LEDGER_CHAT_DIRECT ? "direct" : "group");
    for (size_t i = 0; i < chat->admin_count; i++)
        harness_add(arg, "%s%.*s", i ? "," : "", SLICE_FORMAT(chat->admins[i]));
    harness_add(arg, "%s", chat->members_can_add ? " open" : "");
    for (size_t i = 0; i < chat->profile_count; i++) {
        const struct ledger_chat_profile *profile = &chat->profiles[i];
        harness_add(arg, " %.*s:%.*s:%.*s:%llu", SLICE_FORMAT(profile->user),
                    SLICE_FORMAT(profile->appearance.display_name),
                    SLICE_FORMAT(profile->appearance.avatar_url),
                    (unsigned long long)profile->read_sequence);
    }
}

static void write_member(void *arg, const struct ledger_member_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, "%s", outcome->changed ? " changed" : "");
    if (outcome->promoted.data)
        harness_add(arg, " admin %.*s", SLICE_FORMAT(outcome->promoted));
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
    struct slice ids[100];
    size_t count = harness_split(members, ids, 100);
    ledger_chat_create(&harness->client, slice_of(chat), slice_of(creator), ids, count, true,
                       write_chat, harness);
    return harness_line(harness);
}

const char *harness_chat_make(struct harness *harness, const char *chat, const char *creator,
                              const char *members)
{
    struct slice ids[100];
    size_t count = harness_split(members, ids, 100);
    ledger_chat_make(&harness->client, slice_of(chat), slice_of(creator), ids, count, true,
                     write_chat, harness);
    return harness_line(harness);
}

const char *harness_chat(struct harness *harness, const char *chat, const char *reader)
{
    ledger_chat_get(&harness->client, slice_of(chat), slice_of(reader), false, write_chat, harness);
    return harness_line(harness);
}

const char *harness_direct(struct harness *harness, const char *chat, const char *user,
                           const char *other)
{
    ledger_chat_open_direct(&harness->client, slice_of(chat), slice_of(user), slice_of(other),
                            write_chat, harness);
    return harness_line(harness);
}

const char *harness_chat_roles(struct harness *harness, const char *chat, const char *reader)
{
    ledger_chat_get(&harness->client, slice_of(chat), slice_of(reader), true, write_roles, harness);
    return harness_line(harness);
}

const char *harness_chat_change(struct harness *harness, const char *chat, const char *actor,
                                bool members_can_add)
{
    ledger_chat_change(&harness->client, slice_of(chat), slice_of(actor), members_can_add,
                       write_roles, harness);
    return harness_line(harness);
}

const char *harness_chats(struct harness *harness, const char *user, const char *after,
                          int64_t activity_ms, uint32_t limit, bool with_members)
{
    struct ledger_chats_cursor cursor = {slice_of(after), activity_ms};
    ledger_chats_list(&harness->client, slice_of(user), &cursor, limit, with_members, write_chats,
                      harness);
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
                              write_member, harness);
    return harness_line(harness);
}

const char *harness_admin(struct harness *harness, const char *chat, const char *actor,
                          const char *user, bool is_admin)
{
    (is_admin ? ledger_chat_admin_put : ledger_chat_admin_delete)(&harness->client, slice_of(chat),
                                                                  slice_of(actor), slice_of(user),
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

const char *harness_message_delete(struct harness *harness, const char *chat, uint64_t sequence)
{
    ledger_message_delete(&harness->client, slice_of(chat), sequence, harness_write_change,
                          harness);
    return harness_line(harness);
}
