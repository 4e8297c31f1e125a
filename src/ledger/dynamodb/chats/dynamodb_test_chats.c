#include "ledger/dynamodb/chats/dynamodb_test_chats.h"

#include "ledger/dynamodb/client/dynamodb_item.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { PAGE_ITEMS = 1000, DRAFT_SUFFIX = 33, KEY_MAX = 512 };

struct scanned_item {
    struct slice partition;
    struct slice sort;
    struct dynamodb_item item;
};

struct scanned_table {
    struct ledger_request_array items;
};

/* ---- reading tables ---- */

static struct scanned_item *get_scanned(const struct scanned_table *table, size_t at)
{
    return (struct scanned_item *)table->items.items + at;
}

/* Returns the last key of a page as DynamoDB wrote it; SLICE_NONE after the last page. */
static struct slice read_scan_page(struct dynamodb_task *task, const char *partition,
                                   struct slice answer, struct scanned_table *table)
{
    struct json json;
    struct slice name, last = SLICE_NONE;
    json_init(&json, (char *)answer.data, answer.len);
    json_object(&json);
    while (json_member(&json, &name)) {
        if (slice_is(name, "LastEvaluatedKey")) {
            json_raw(&json, &last);
        } else if (slice_is(name, "Items")) {
            json_array(&json);
            while (json_element(&json)) {
                struct scanned_item *scanned =
                    ledger_request_array_push(task->request, &table->items, sizeof(*scanned));
                dynamodb_read_item(task, &json, &scanned->item);
                scanned->partition = dynamodb_item_text(&scanned->item, partition);
                scanned->sort = dynamodb_item_text(&scanned->item, "part_key");
            }
        } else {
            json_skip(&json);
        }
    }
    assert_true(json_done(&json));
    return last;
}

static struct scanned_table scan_table(const struct dynamodb_test_server *server,
                                       struct ledger_request *request, const char *name,
                                       const char *partition)
{
    struct dynamodb_task task = {.request = request};
    struct scanned_table table = {0};
    char start[KEY_MAX] = "";
    struct slice last;
    do {
        const char *answer = dynamodb_test_server_call(
            server, "Scan", "{'TableName':'@%s','ConsistentRead':true,'Limit':%d%s}", name,
            PAGE_ITEMS, start);
        answer = strstr(answer, "\r\n\r\n") + 4;
        last = read_scan_page(&task, partition, ledger_request_copy(request, slice_of(answer)),
                              &table);
        snprintf(start, sizeof(start), ",'ExclusiveStartKey':%.*s", SLICE_FORMAT(last));
    } while (last.len);
    return table;
}

static size_t count_scanned(const struct scanned_table *table, struct slice partition,
                            struct slice prefix)
{
    size_t count = 0;
    for (size_t i = 0; i < table->items.count; i++) {
        const struct scanned_item *scanned = get_scanned(table, i);
        count += (!partition.data || slice_equal(scanned->partition, partition)) &&
                 slice_starts_with(scanned->sort, prefix);
    }
    return count;
}

static const struct dynamodb_item *find_scanned(const struct scanned_table *table,
                                                struct slice partition, const char *sort)
{
    for (size_t i = 0; i < table->items.count; i++)
        if (slice_equal(get_scanned(table, i)->partition, partition) &&
            slice_is(get_scanned(table, i)->sort, sort))
            return &get_scanned(table, i)->item;
    return NULL;
}

/* ---- comparing ---- */

struct scanned_chats {
    struct scanned_table chats;
    struct scanned_table users;
};

static void write_member_prefix(const struct dynamodb_item *chat, char prefix[KEY_MAX])
{
    struct slice draft = dynamodb_item_text(chat, "draft_id");
    snprintf(prefix, KEY_MAX, draft.len ? "member+%.*s#" : "member%.*s#", SLICE_FORMAT(draft));
}

static void check_member_entry(const struct scanned_chats *all, const struct scanned_item *chat,
                               struct slice user)
{
    struct slice draft = dynamodb_item_text(&chat->item, "draft_id");
    char key[KEY_MAX];
    if (draft.len)
        snprintf(key, sizeof(key), "chat+%.*s#%.*s", SLICE_FORMAT(chat->partition),
                 SLICE_FORMAT(draft));
    else
        snprintf(key, sizeof(key), "chat#%.*s", SLICE_FORMAT(chat->partition));
    if (!find_scanned(&all->users, user, key))
        fail_msg("%.*s has no entry %s", SLICE_FORMAT(user), key);
}

static void check_chat(const struct scanned_chats *all, const struct scanned_item *chat)
{
    int64_t members = 0, admins = 0;
    char prefix[KEY_MAX];
    write_member_prefix(&chat->item, prefix);
    for (size_t i = 0; i < all->chats.items.count; i++) {
        const struct scanned_item *member = get_scanned(&all->chats, i);
        if (!slice_equal(member->partition, chat->partition) ||
            !slice_starts_with(member->sort, slice_of(prefix)))
            continue;
        members++;
        admins += dynamodb_item_number(&member->item, "is_admin");
        check_member_entry(all, chat, slice_after(member->sort, strlen(prefix)));
    }
    assert_int_equal(members, dynamodb_item_number(&chat->item, "member_count"));
    assert_int_equal(admins, dynamodb_item_number(&chat->item, "admin_count"));
    if (members > 0 && dynamodb_item_number(&chat->item, "chat_kind") == LEDGER_CHAT_GROUP)
        assert_true(admins > 0);
}

/* Returns whether the user is a member of the chat, if it exists and was made from the draft. */
static bool is_scanned_member(const struct scanned_chats *all, struct slice chat_id,
                              struct slice draft, struct slice user, bool *exists)
{
    const struct dynamodb_item *chat = find_scanned(&all->chats, chat_id, "chat");
    char prefix[KEY_MAX], key[2 * KEY_MAX];
    *exists = chat && slice_equal(dynamodb_item_text(chat, "draft_id"), draft);
    if (!*exists)
        return false;
    write_member_prefix(chat, prefix);
    snprintf(key, sizeof(key), "%s%.*s", prefix, SLICE_FORMAT(user));
    return find_scanned(&all->chats, chat_id, key) != NULL;
}

/* What an abandoned draft left is without effect. */
static void check_entry(const struct scanned_chats *all, const struct scanned_item *entry)
{
    struct slice rest = slice_after(entry->sort, strlen("chat#"));
    bool is_staged = slice_starts_with(entry->sort, SLICE("chat+")), exists;
    size_t id_len = is_staged ? rest.len - DRAFT_SUFFIX : rest.len;
    struct slice draft = is_staged ? slice_after(rest, id_len + 1) : SLICE_NONE;
    bool is_member =
        is_scanned_member(all, slice_first(rest, id_len), draft, entry->partition, &exists);
    if (!is_member && (exists || !is_staged))
        fail_msg("%.*s is no member for entry %.*s", SLICE_FORMAT(entry->partition),
                 SLICE_FORMAT(entry->sort));
}

static void check_read_mark(const struct scanned_chats *all, const struct scanned_item *mark)
{
    struct slice user = slice_after(mark->sort, strlen("read#"));
    const struct dynamodb_item *chat = find_scanned(&all->chats, mark->partition, "chat");
    char prefix[KEY_MAX];
    bool exists;
    assert_non_null(chat);
    assert_true(is_scanned_member(all, mark->partition, dynamodb_item_text(chat, "draft_id"), user,
                                  &exists));
    snprintf(prefix, sizeof(prefix), "cursor#%zu:%.*s:", user.len, SLICE_FORMAT(user));
    assert_int_equal(count_scanned(&all->chats, mark->partition, slice_of(prefix)),
                     dynamodb_item_number(&mark->item, "cursor_count"));
}

static void check_cursors_are_counted(const struct scanned_chats *all)
{
    int64_t counted = 0;
    for (size_t i = 0; i < all->chats.items.count; i++)
        counted += dynamodb_item_number(&get_scanned(&all->chats, i)->item, "cursor_count");
    assert_int_equal(counted, count_scanned(&all->chats, SLICE_NONE, SLICE("cursor#")));
}

void dynamodb_test_chats_check(const struct dynamodb_test_server *server,
                               struct ledger_client *client)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_SETTINGS_GET, NULL);
    struct scanned_chats all = {scan_table(server, request, "chats", "chat_id"),
                                scan_table(server, request, "users", "user_id")};
    for (size_t i = 0; i < all.chats.items.count; i++) {
        const struct scanned_item *scanned = get_scanned(&all.chats, i);
        if (slice_is(scanned->sort, "chat"))
            check_chat(&all, scanned);
        else if (slice_starts_with(scanned->sort, SLICE("read#")))
            check_read_mark(&all, scanned);
    }
    for (size_t i = 0; i < all.users.items.count; i++) {
        const struct scanned_item *scanned = get_scanned(&all.users, i);
        if (slice_starts_with(scanned->sort, SLICE("chat")))
            check_entry(&all, scanned);
        else if (slice_starts_with(scanned->sort, SLICE("direct#")))
            assert_non_null(
                find_scanned(&all.chats, dynamodb_item_text(&scanned->item, "chat_id"), "chat"));
    }
    check_cursors_are_counted(&all);
    ledger_request_free(request);
}

size_t dynamodb_test_chats_count(const struct dynamodb_test_server *server,
                                 struct ledger_client *client, const char *table,
                                 const char *partition, const char *prefix)
{
    struct ledger_request *request = ledger_request_make(client, LEDGER_SETTINGS_GET, NULL);
    struct scanned_table scanned =
        scan_table(server, request, table, strcmp(table, "users") == 0 ? "user_id" : "chat_id");
    size_t count = count_scanned(&scanned, slice_of(partition), slice_of(prefix));
    ledger_request_free(request);
    return count;
}
