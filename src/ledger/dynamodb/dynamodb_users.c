/* Users: settings. The item "settings" of a user exists once something was set. */
#include "ledger/dynamodb/dynamodb_operations.h"

static struct ledger_settings read_settings(const struct dynamodb_item *item)
{
    return (struct ledger_settings){
        .presence = (enum ledger_visibility)dynamodb_item_number(item, "presence_visibility"),
        .last_seen = (enum ledger_visibility)dynamodb_item_number(item, "last_seen_visibility"),
        .group_adds = (enum ledger_group_adds)dynamodb_item_number(item, "group_adds"),
        .hides_reads = dynamodb_item_number(item, "hides_reads") != 0,
    };
}

enum ledger_status dynamodb_users_settings_get(struct dynamodb_task *task)
{
    struct ledger_settings_outcome *outcome = &task->request->outcome.settings;
    struct dynamodb_key key = {DYNAMODB_USERS, task->request->input.user, SLICE("settings"), 0};
    struct dynamodb_item item = dynamodb_get(task, key);
    outcome->settings = outcome->previous = read_settings(&item);
    outcome->appearance.display_name = dynamodb_item_text(&item, "display_name");
    outcome->appearance.avatar_url = dynamodb_item_text(&item, "avatar_url");
    return LEDGER_OK;
}
