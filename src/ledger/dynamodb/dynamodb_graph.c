/* Social graphs: all that a user's audience follows from, read at the same time but not at one instant. */
#include "base/id_list.h"
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_parallel.h"

#include <stdlib.h>

struct graph_chat {
    struct slice id;
    bool is_accepted;
    int64_t activity_ms;
};

/* Accepted chats come first, so that chats which others force on the user displace none of them. */
static int compare_graph_chats(const void *a, const void *b)
{
    const struct graph_chat *x = a, *y = b;
    if (x->is_accepted != y->is_accepted)
        return x->is_accepted ? -1 : 1;
    if (x->activity_ms != y->activity_ms)
        return x->activity_ms > y->activity_ms ? -1 : 1;
    return id_list_compare(y->id, x->id);
}

static void read_graph_chats(struct dynamodb_task *task, struct ledger_request_array *chats)
{
    static const char PREFIX[] = "chat#";
    struct dynamodb_query query = {.table = DYNAMODB_USERS,
                                   .partition = task->request->input.user,
                                   .prefix = PREFIX,
                                   .attributes = "part_key, is_accepted"};
    struct dynamodb_item item;
    while (dynamodb_query_next(task, &query, &item)) {
        struct graph_chat *chat = ledger_request_array_push(task->request, chats, sizeof(*chat));
        if (chat)
            *chat = (struct graph_chat){
                .id = slice_after(dynamodb_item_text(&item, "part_key"), sizeof(PREFIX) - 1),
                .is_accepted = dynamodb_item_number(&item, "is_accepted") != 0};
    }
}

/* Reads the activity of the chats and removes those that do not exist. A chat whose counter is lost still exists. */
static void read_graph_activity(struct dynamodb_task *task, struct ledger_request_array *chats)
{
    struct graph_chat *all = chats->items;
    size_t count = chats->count, kept = 0;
    struct dynamodb_key *keys = ledger_request_alloc(task->request, 2 * count * sizeof(*keys));
    struct dynamodb_item *items = ledger_request_alloc(task->request, 2 * count * sizeof(*items));
    if (!keys || !items)
        return;
    for (size_t i = 0; i < count; i++) {
        keys[2 * i] =
            (struct dynamodb_key){.table = DYNAMODB_CHAT_COUNTERS, .partition = all[i].id};
        keys[2 * i + 1] = (struct dynamodb_key){DYNAMODB_CHATS, all[i].id, SLICE("chat"), 0};
    }
    dynamodb_get_many(task, keys, 2 * count, items);
    for (size_t i = 0; i < count; i++) {
        if (!dynamodb_item_exists(&items[2 * i]) && !dynamodb_item_exists(&items[2 * i + 1]))
            continue;
        all[i].activity_ms = dynamodb_item_number(&items[2 * i], "activity_ms");
        all[kept++] = all[i];
    }
    chats->count = kept;
}

static struct id_list get_first_chats(struct dynamodb_task *task)
{
    struct ledger_request_array chats = {0}, ids = {0};
    read_graph_chats(task, &chats);
    if (!chats.count)
        return (struct id_list){0};
    read_graph_activity(task, &chats);
    qsort(chats.items, chats.count, sizeof(struct graph_chat), compare_graph_chats);
    for (size_t i = 0; i < chats.count && i < task->request->input.limit; i++) {
        struct slice *id = ledger_request_array_push(task->request, &ids, sizeof(*id));
        if (id)
            *id = ((struct graph_chat *)chats.items)[i].id;
    }
    struct id_list first = {ids.items, ids.count};
    id_list_sort(&first);
    return first;
}

enum graph_part { GRAPH_SETTINGS, GRAPH_CONTACTS, GRAPH_BLOCKED, GRAPH_BLOCKED_BY, GRAPH_CHATS };

static void get_graph_part(struct dynamodb_task *task, size_t at, void *arg)
{
    struct ledger_graph_outcome *outcome = arg;
    struct slice user = task->request->input.user;
    switch ((enum graph_part)at) {
    case GRAPH_SETTINGS:
        outcome->settings = dynamodb_users_get_settings(task, user);
        break;
    case GRAPH_CONTACTS:
        outcome->contacts = dynamodb_contacts_read_ids(task, user, "contact#", 0);
        break;
    case GRAPH_BLOCKED:
        outcome->blocked = dynamodb_contacts_read_ids(task, user, "block#", 0);
        break;
    case GRAPH_BLOCKED_BY:
        outcome->blocked_by =
            dynamodb_contacts_read_ids(task, user, "blocked_by#", LEDGER_BLOCKS_MAX);
        break;
    case GRAPH_CHATS:
        outcome->chats = get_first_chats(task);
    }
}

enum ledger_status dynamodb_users_graph(struct dynamodb_task *task)
{
    dynamodb_parallel(task, GRAPH_CHATS + 1, get_graph_part, &task->request->outcome.graph);
    return LEDGER_OK;
}
