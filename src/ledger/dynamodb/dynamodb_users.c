/*
 * Users: settings, how they appear, when they were last seen, their profiles and social graphs.
 *
 * The item "settings" of a user exists once something was set or the user was seen. Settings change under a version, because the
 * answer says what they were before; last-seen times and presence versions only grow, so each change carries its own condition.
 */
#include "base/id_list.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_relation.h"

#include <assert.h>
#include <stdlib.h>

/* ---- settings ---- */

static struct dynamodb_key get_settings_key(struct slice user)
{
    return (struct dynamodb_key){DYNAMODB_USERS, user, SLICE("settings"), 0};
}

static struct ledger_settings read_settings(const struct dynamodb_item *item)
{
    return (struct ledger_settings){
        .presence = (enum ledger_visibility)dynamodb_item_number(item, "presence_visibility"),
        .last_seen = (enum ledger_visibility)dynamodb_item_number(item, "last_seen_visibility"),
        .group_adds = (enum ledger_group_adds)dynamodb_item_number(item, "group_adds"),
        .hides_reads = dynamodb_item_number(item, "hides_reads") != 0,
    };
}

struct ledger_settings dynamodb_users_get_settings(struct dynamodb_task *task, struct slice user)
{
    struct dynamodb_item item = dynamodb_get(task, get_settings_key(user));
    return read_settings(&item);
}

static struct ledger_appearance read_appearance(const struct dynamodb_item *item)
{
    return (struct ledger_appearance){dynamodb_item_text(item, "display_name"),
                                      dynamodb_item_text(item, "avatar_url")};
}

/* Returns the version that the settings have. */
static int64_t get_settings(struct dynamodb_task *task)
{
    struct ledger_settings_outcome *outcome = &task->request->outcome.settings;
    struct dynamodb_item item = dynamodb_get(task, get_settings_key(task->request->input.user));
    outcome->settings = outcome->previous = read_settings(&item);
    outcome->appearance = read_appearance(&item);
    return dynamodb_item_number(&item, "settings_version");
}

enum ledger_status dynamodb_users_settings_get(struct dynamodb_task *task)
{
    get_settings(task);
    return LEDGER_OK;
}

static enum dynamodb_outcome put_settings(struct dynamodb_task *task, int64_t version)
{
    const struct ledger_settings_outcome *outcome = &task->request->outcome.settings;
    struct dynamodb_transaction transaction;
    dynamodb_transaction_begin(&transaction, task);
    dynamodb_transaction_update(
        &transaction, get_settings_key(task->request->input.user),
        "SET presence_visibility = :presence, last_seen_visibility = :last_seen, "
        "group_adds = :group_adds, hides_reads = :hides_reads, display_name = :display_name, "
        "avatar_url = :avatar_url, settings_version = :new_version",
        "attribute_not_exists(settings_version) OR settings_version = :version",
        DYNAMODB_VALUES(DYNAMODB_NUMBER(":presence", outcome->settings.presence),
                        DYNAMODB_NUMBER(":last_seen", outcome->settings.last_seen),
                        DYNAMODB_NUMBER(":group_adds", outcome->settings.group_adds),
                        DYNAMODB_NUMBER(":hides_reads", outcome->settings.hides_reads),
                        DYNAMODB_TEXT(":display_name", outcome->appearance.display_name),
                        DYNAMODB_TEXT(":avatar_url", outcome->appearance.avatar_url),
                        DYNAMODB_NUMBER(":version", version),
                        DYNAMODB_NUMBER(":new_version", version + 1)));
    return dynamodb_transaction_commit(&transaction);
}

enum ledger_status dynamodb_users_settings_put(struct dynamodb_task *task)
{
    for (unsigned i = 0; i < DYNAMODB_DECISIONS_MAX; i++) {
        int64_t version = get_settings(task);
        ledger_request_patch_settings(task->request);
        if (put_settings(task, version) != DYNAMODB_REFUSED)
            return LEDGER_OK;
    }
    return LEDGER_UNAVAILABLE;
}

/* ---- many users ---- */

/* What is stored of several users, each of them once, sorted. */
struct users_items {
    struct id_list users;
    struct dynamodb_item *settings;
    struct dynamodb_item *relations; /* with the viewer; NULL without one */
};

static int compare_ids(const void *a, const void *b)
{
    return id_list_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* A call must not ask for an item twice. */
static struct id_list sort_and_unite(struct dynamodb_task *task, const struct slice *ids,
                                     size_t count)
{
    struct slice *united = ledger_request_alloc(task->request, count * sizeof(*united));
    size_t kept = 0;
    if (!united || !count)
        return (struct id_list){0};
    memcpy(united, ids, count * sizeof(*united));
    qsort(united, count, sizeof(*united), compare_ids);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !slice_equal(united[i], united[kept - 1]))
            united[kept++] = united[i];
    return (struct id_list){united, kept};
}

static struct users_items get_users(struct dynamodb_task *task, struct slice viewer)
{
    const struct ledger_request_input *input = &task->request->input;
    struct id_list users = sort_and_unite(task, input->ids, input->id_count);
    size_t count = users.count * (viewer.data ? 2 : 1);
    struct dynamodb_key *keys = ledger_request_alloc(task->request, count * sizeof(*keys));
    struct dynamodb_item *items = ledger_request_alloc(task->request, count * sizeof(*items));
    if (!keys || !items)
        return (struct users_items){0};
    for (size_t i = 0; i < count; i++)
        keys[i] = i < users.count ? get_settings_key(users.ids[i])
                                  : dynamodb_relation_key(task, viewer, users.ids[i - users.count]);
    dynamodb_get_many(task, keys, count, items);
    return (struct users_items){users, items, viewer.data ? items + users.count : NULL};
}

/* The user is one of them. */
static size_t find_user(const struct users_items *items, struct slice user)
{
    assert(items->users.count > 0);
    const struct slice *found =
        bsearch(&user, items->users.ids, items->users.count, sizeof(user), compare_ids);
    return (size_t)(found - items->users.ids);
}

static struct ledger_profile read_profile(const struct users_items *items, struct slice viewer,
                                          struct slice user)
{
    size_t at = find_user(items, user);
    const struct dynamodb_item *settings = &items->settings[at];
    struct ledger_profile profile = {
        .user = user,
        .settings = read_settings(settings),
        .last_seen_ms = dynamodb_item_number(settings, "last_seen_ms"),
        .presence_version = (uint64_t)dynamodb_item_number(settings, "presence_version")};
    if (items->relations) {
        struct dynamodb_relation relation =
            dynamodb_relation_read(&items->relations[at], viewer, user);
        profile.are_contacts = relation.are_contacts;
        profile.blocked_by_viewer = relation.user_blocks;
        profile.blocked_by_target = relation.other_blocks;
    }
    return profile;
}

enum ledger_status dynamodb_users_profiles(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct users_items items = get_users(task, input->user);
    struct ledger_profile *profiles =
        ledger_request_alloc(task->request, input->id_count * sizeof(*profiles));
    for (size_t i = 0; !task->request->exhausted && i < input->id_count; i++)
        profiles[i] = read_profile(&items, input->user, input->ids[i]);
    task->request->outcome.profiles.profiles = profiles;
    task->request->outcome.profiles.count = input->id_count;
    return LEDGER_OK;
}

enum ledger_status dynamodb_users_appearances(struct dynamodb_task *task)
{
    const struct ledger_request_input *input = &task->request->input;
    struct users_items items = get_users(task, SLICE_NONE);
    struct ledger_appearance *appearances =
        ledger_request_alloc(task->request, input->id_count * sizeof(*appearances));
    for (size_t i = 0; !task->request->exhausted && i < input->id_count; i++)
        appearances[i] = read_appearance(&items.settings[find_user(&items, input->ids[i])]);
    task->request->outcome.appearances.appearances = appearances;
    task->request->outcome.appearances.count = input->id_count;
    return LEDGER_OK;
}

/* ---- last seen ---- */

/* Raises one of the values that only grow. */
static bool raise_value(struct dynamodb_task *task, struct slice user, const char *update,
                        const char *condition, int64_t value)
{
    return value > 0 &&
           dynamodb_update(task, get_settings_key(user), update, condition,
                           DYNAMODB_VALUES(DYNAMODB_NUMBER(":value", value))) == DYNAMODB_DONE;
}

static bool raise_both(struct dynamodb_task *task, const struct ledger_last_seen *seen)
{
    return seen->last_seen_ms > 0 && seen->presence_version > 0 &&
           dynamodb_update(
               task, get_settings_key(seen->user),
               "SET last_seen_ms = :seen, presence_version = :version",
               "(attribute_not_exists(last_seen_ms) OR last_seen_ms < :seen) AND "
               "(attribute_not_exists(presence_version) OR presence_version < :version)",
               DYNAMODB_VALUES(DYNAMODB_NUMBER(":seen", seen->last_seen_ms),
                               DYNAMODB_NUMBER(":version", seen->presence_version))) ==
               DYNAMODB_DONE;
}

/* Mostly both grow, which is one write. */
static void put_last_seen(struct dynamodb_task *task, size_t at, void *arg)
{
    const struct ledger_last_seen *seen = &task->request->input.seen[at];
    bool *changed = arg;
    if (raise_both(task, seen)) {
        *changed = true;
        return;
    }
    *changed |= raise_value(task, seen->user, "SET last_seen_ms = :value",
                            "attribute_not_exists(last_seen_ms) OR last_seen_ms < :value",
                            seen->last_seen_ms);
    *changed |= raise_value(task, seen->user, "SET presence_version = :value",
                            "attribute_not_exists(presence_version) OR presence_version < :value",
                            (int64_t)seen->presence_version);
}

enum ledger_status dynamodb_users_last_seen_put(struct dynamodb_task *task)
{
    bool changed = false;
    dynamodb_parallel(task, task->request->input.seen_count, put_last_seen, &changed);
    task->request->outcome.change.changed = changed;
    return LEDGER_OK;
}
