/* Social graphs: all that a user's audience follows from, read at the same time but not at one instant. */
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_operations.h"

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
        outcome->chats = dynamodb_chats_of_user(task, user, task->request->input.limit);
    }
}

enum ledger_status dynamodb_users_graph(struct dynamodb_task *task)
{
    dynamodb_parallel(task, GRAPH_CHATS + 1, get_graph_part, &task->request->outcome.graph);
    return LEDGER_OK;
}
