/* Reading a chat: its item, members, read marks and profiles. */
#include "ledger/dynamodb/chats/dynamodb_chats.h"

#include "base/id_list.h"

#include <stdio.h>

enum { PREFIX_TEXT_MAX = 16 + DYNAMODB_DRAFT_CHARACTERS };

/* ---- keys ---- */

static void write_members_prefix(const struct dynamodb_chat *chat, char prefix[PREFIX_TEXT_MAX])
{
    if (chat->draft.len)
        snprintf(prefix, PREFIX_TEXT_MAX, "member+%.*s#", SLICE_FORMAT(chat->draft));
    else
        snprintf(prefix, PREFIX_TEXT_MAX, "member#");
}

const char *dynamodb_chat_members_prefix(struct dynamodb_task *task,
                                         const struct dynamodb_chat *chat)
{
    char *prefix = ledger_request_alloc(task->request, PREFIX_TEXT_MAX);
    if (!prefix)
        return "member#"; /* the request fails */
    write_members_prefix(chat, prefix);
    return prefix;
}

struct dynamodb_key dynamodb_chat_member_key(struct dynamodb_task *task,
                                             const struct dynamodb_chat *chat, struct slice user)
{
    char prefix[PREFIX_TEXT_MAX];
    write_members_prefix(chat, prefix);
    return dynamodb_chat_part_key(task, chat->id, prefix, user);
}

struct dynamodb_key dynamodb_chat_entry_key(struct dynamodb_task *task,
                                            const struct dynamodb_chat *chat, struct slice user)
{
    char prefix[8 + LEDGER_ID_BYTES_MAX];
    struct slice sort;
    if (chat->draft.len) {
        snprintf(prefix, sizeof(prefix), "chat+%.*s#", SLICE_FORMAT(chat->id));
        sort = dynamodb_join(task, prefix, chat->draft);
    } else {
        sort = dynamodb_join(task, "chat#", chat->id);
    }
    return (struct dynamodb_key){DYNAMODB_USERS, user, sort, 0};
}

struct dynamodb_key dynamodb_chat_part_key(struct dynamodb_task *task, struct slice chat,
                                           const char *prefix, struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_CHATS, chat, dynamodb_join(task, prefix, user), 0};
}

struct dynamodb_key dynamodb_chat_left_key(struct dynamodb_task *task, struct slice chat,
                                           struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, dynamodb_join(task, "left#", chat), 0};
}

/* ---- the chat ---- */

/* Reads the items of the chat and of the user in one call, and in a second one the member of a staged chat, whose key only the
 * chat's item tells. */
static struct dynamodb_chat read_chat_items(struct dynamodb_task *task, struct slice id,
                                            struct slice user, bool with_marks)
{
    struct dynamodb_chat chat = {.id = id};
    struct dynamodb_key keys[5] = {dynamodb_chat_key(id), dynamodb_chat_counter_key(id)};
    struct dynamodb_item items[5] = {0};
    size_t count = with_marks ? 2 : 1, member = count;
    if (user.data)
        keys[count++] = dynamodb_chat_member_key(task, &chat, user);
    if (user.data && with_marks) {
        keys[count++] = dynamodb_chat_part_key(task, id, "sent#", user);
        keys[count++] = dynamodb_chat_part_key(task, id, "read#", user);
    }
    dynamodb_get_many(task, keys, count, items);
    if (!dynamodb_item_exists(&items[0]))
        return chat;
    chat.item = items[0];
    chat.draft = dynamodb_item_text(&chat.item, "draft_id");
    if (with_marks)
        chat.counter = items[1];
    if (user.data && chat.draft.len)
        chat.member = dynamodb_get(task, dynamodb_chat_member_key(task, &chat, user));
    else if (user.data)
        chat.member = items[member];
    if (user.data && with_marks) {
        chat.sent = items[member + 1];
        chat.read = items[member + 2];
    }
    return chat;
}

struct dynamodb_chat dynamodb_chat_read(struct dynamodb_task *task, struct slice id,
                                        struct slice user)
{
    return read_chat_items(task, id, user, false);
}

struct dynamodb_chat dynamodb_chat_read_marks(struct dynamodb_task *task, struct slice id,
                                              struct slice user)
{
    return read_chat_items(task, id, user, true);
}

/* ---- members ---- */

static bool read_members_once(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                              struct ledger_chat *out)
{
    const char *prefix = dynamodb_chat_members_prefix(task, chat);
    struct dynamodb_query query = {.table = DYNAMODB_CHATS,
                                   .partition = chat->id,
                                   .prefix = prefix,
                                   .attributes = "part_key, is_admin"};
    struct ledger_request_array members = {0}, admins = {0};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct slice id = slice_after(dynamodb_item_text(&item, "part_key"), strlen(prefix));
        struct slice *member = ledger_request_array_push(task->request, &members, sizeof(*member));
        struct slice *admin =
            dynamodb_item_number(&item, "is_admin")
                ? ledger_request_array_push(task->request, &admins, sizeof(*admin))
                : NULL;
        if (member)
            *member = id;
        if (admin)
            *admin = id;
    }
    out->members = members.items;
    out->member_count = members.count;
    out->admins = admins.items;
    out->admin_count = admins.count;
    return members.count == (size_t)dynamodb_item_number(&chat->item, "member_count") &&
           admins.count == (size_t)dynamodb_item_number(&chat->item, "admin_count");
}

/* The members are read after the chat, so they are at least as new as its members_version. If their number shows that they
 * changed meanwhile, both are read again, so that nobody sees half a change. */
static void read_members(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                         struct ledger_chat *out)
{
    struct dynamodb_chat latest = *chat;
    for (unsigned i = 0; i < DYNAMODB_DECISIONS_MAX && !task->failed; i++) {
        out->members_version = (uint64_t)dynamodb_item_number(&latest.item, "members_version");
        if (read_members_once(task, &latest, out))
            return;
        latest.item = dynamodb_get(task, dynamodb_chat_key(chat->id));
    }
}

/* ---- profiles ---- */

static bool is_read_mark_shown(const struct ledger_chat *chat, struct slice reader,
                               const struct dynamodb_item *settings, bool is_blocked, size_t at)
{
    if (chat->member_count > LEDGER_RECEIPT_MEMBERS_MAX)
        return false;
    return slice_equal(chat->members[at], reader) ||
           (!dynamodb_item_number(settings, "hides_reads") && !is_blocked);
}

static void read_profiles(struct dynamodb_task *task, struct slice reader, struct ledger_chat *chat)
{
    struct id_list members = {chat->members, chat->member_count < LEDGER_CHAT_PROFILES_MAX
                                                 ? chat->member_count
                                                 : LEDGER_CHAT_PROFILES_MAX};
    bool with_marks = chat->member_count <= LEDGER_RECEIPT_MEMBERS_MAX;
    size_t key_count = members.count * (with_marks ? 2 : 1);
    struct dynamodb_key *keys = ledger_request_alloc(task->request, key_count * sizeof(*keys));
    struct dynamodb_item *items = ledger_request_alloc(task->request, key_count * sizeof(*items));
    struct ledger_request_array profiles = {0};
    const bool *blocked = with_marks ? dynamodb_relation_blocks(task, reader, &members) : NULL;
    if (!keys || !items || (with_marks && !blocked))
        return;
    for (size_t i = 0; i < members.count; i++) {
        keys[i] = (struct dynamodb_key){DYNAMODB_USERS, members.ids[i], SLICE("settings"), 0};
        if (with_marks)
            keys[members.count + i] =
                dynamodb_chat_part_key(task, chat->id, "read#", members.ids[i]);
    }
    dynamodb_get_many(task, keys, key_count, items);
    for (size_t i = 0; i < members.count; i++) {
        struct ledger_chat_profile profile = {
            .user = members.ids[i],
            .appearance = {dynamodb_item_text(&items[i], "display_name"),
                           dynamodb_item_text(&items[i], "avatar_url")},
        };
        if (with_marks && is_read_mark_shown(chat, reader, &items[i], blocked[i], i))
            profile.read_sequence =
                (uint64_t)dynamodb_item_number(&items[members.count + i], "read_sequence");
        if (!profile.appearance.display_name.len && !profile.appearance.avatar_url.len &&
            !profile.read_sequence)
            continue;
        struct ledger_chat_profile *kept =
            ledger_request_array_push(task->request, &profiles, sizeof(*kept));
        if (kept)
            *kept = profile;
    }
    chat->profiles = profiles.items;
    chat->profile_count = profiles.count;
}

/* ---- as a reader sees it ---- */

const struct dynamodb_chat_parts DYNAMODB_CHAT_WITH_MEMBERS = {.members = true};
const struct dynamodb_chat_parts DYNAMODB_CHAT_WITH_PROFILES = {.members = true, .profiles = true};

/* Without its counter the chat is halted; its messages tell the last sequence. */
uint64_t dynamodb_chat_latest_sequence(struct dynamodb_task *task, const struct dynamodb_chat *chat)
{
    struct dynamodb_query query = {
        .table = DYNAMODB_MESSAGES, .partition = chat->id, .descending = true, .limit = 1};
    struct dynamodb_item message;
    if (dynamodb_item_has(&chat->counter, "sequence_counter"))
        return (uint64_t)dynamodb_item_number(&chat->counter, "sequence_counter");
    return dynamodb_query_next(task, &query, &message)
               ? (uint64_t)dynamodb_item_number(&message, "sequence")
               : 0;
}

/* The items are not of one instant, so the numbers may disagree for a moment. */
static uint64_t count_unread(const struct dynamodb_chat *chat, uint64_t latest_sequence)
{
    int64_t others = (int64_t)latest_sequence - dynamodb_item_number(&chat->read, "read_sequence");
    int64_t own = dynamodb_item_number(&chat->sent, "sent_count") -
                  dynamodb_item_number(&chat->read, "own_read_count");
    return others > own ? (uint64_t)(others - own) : 0;
}

void dynamodb_chat_describe(struct dynamodb_task *task, const struct dynamodb_chat *chat,
                            struct slice reader, const struct dynamodb_chat_parts *parts,
                            struct ledger_chat *out)
{
    *out = (struct ledger_chat){
        .id = chat->id,
        .kind = (enum ledger_chat_kind)dynamodb_item_number(&chat->item, "chat_kind"),
        .creator = dynamodb_item_text(&chat->item, "creator_id"),
        .created_at_ms = dynamodb_item_number(&chat->item, "created_at_ms"),
        .activity_ms = dynamodb_item_number(&chat->counter, "activity_ms"),
        .member_count = (size_t)dynamodb_item_number(&chat->item, "member_count"),
        .members_can_add = dynamodb_item_number(&chat->item, "members_can_add") != 0,
        .members_version = (uint64_t)dynamodb_item_number(&chat->item, "members_version"),
        .latest_sequence = dynamodb_chat_latest_sequence(task, chat),
    };
    if (reader.data)
        out->unread = count_unread(chat, out->latest_sequence);
    if (parts->members)
        read_members(task, chat, out);
    if (parts->profiles || (parts->direct_profiles && out->kind == LEDGER_CHAT_DIRECT))
        read_profiles(task, reader, out);
}

enum ledger_status dynamodb_chat_return(struct dynamodb_task *task, struct slice id,
                                        struct slice reader,
                                        const struct dynamodb_chat_parts *parts)
{
    struct dynamodb_chat chat = dynamodb_chat_read_marks(task, id, reader);
    if (!dynamodb_item_exists(reader.data ? &chat.member : &chat.item))
        return LEDGER_NOT_FOUND;
    dynamodb_chat_describe(task, &chat, reader, parts, &task->request->outcome.chat.chat);
    return LEDGER_OK;
}

enum ledger_status dynamodb_chats_get(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    return dynamodb_chat_return(task, input->chat, input->user,
                                input->with_profiles && input->user.data
                                    ? &DYNAMODB_CHAT_WITH_PROFILES
                                    : &DYNAMODB_CHAT_WITH_MEMBERS);
}
