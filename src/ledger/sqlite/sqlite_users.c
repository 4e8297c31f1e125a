/* Users' settings and last-seen times, their profiles for the privacy engine, and their social graphs. */
#include "ledger/sqlite/sqlite_operations.h"

static struct ledger_settings read_user_settings(struct database *database, struct slice user)
{
    static const char SELECT_SETTINGS[] =
        "SELECT presence_visibility, last_seen_visibility FROM users WHERE user_id = ?";
    struct ledger_settings settings = {LEDGER_VISIBLE_CONTACTS_ONLY, LEDGER_VISIBLE_CONTACTS_ONLY};
    struct query query = query_open_texts(database, SELECT_SETTINGS, user, SLICE_NONE, SLICE_NONE);
    if (query_next(&query)) {
        settings.presence = (enum ledger_visibility)query_int(&query, 0);
        settings.last_seen = (enum ledger_visibility)query_int(&query, 1);
    }
    query_end(&query);
    return settings;
}

enum ledger_status sqlite_users_settings_get(struct database *database,
                                             struct ledger_request *request)
{
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    outcome->settings = read_user_settings(database, request->input.user);
    outcome->previous = outcome->settings;
    return LEDGER_OK;
}

enum ledger_status sqlite_users_graph(struct database *database, struct ledger_request *request)
{
    static const char SELECT_CONTACTS[] =
        "SELECT contact_id FROM contacts WHERE user_id = ? ORDER BY contact_id";
    static const char SELECT_BLOCKED[] =
        "SELECT blocked_id FROM blocks WHERE user_id = ? ORDER BY blocked_id";
    static const char SELECT_BLOCKED_BY[] =
        "SELECT user_id FROM blocks WHERE blocked_id = ? ORDER BY user_id LIMIT ?";
    static const char SELECT_CHATS[] =
        "SELECT chat_id FROM chat_members WHERE user_id = ? ORDER BY chat_id LIMIT ?";
    struct slice user = request->input.user;
    struct ledger_graph_outcome *outcome = &request->outcome.graph;
    outcome->settings = read_user_settings(database, user);
    outcome->contacts.ids = sqlite_operations_read_ids(
        request, query_open_texts(database, SELECT_CONTACTS, user, SLICE_NONE, SLICE_NONE),
        &outcome->contacts.count);
    outcome->blocked.ids = sqlite_operations_read_ids(
        request, query_open_texts(database, SELECT_BLOCKED, user, SLICE_NONE, SLICE_NONE),
        &outcome->blocked.count);
    struct query blocked_by =
        query_open_texts(database, SELECT_BLOCKED_BY, user, SLICE_NONE, SLICE_NONE);
    query_bind_int(&blocked_by, LEDGER_BLOCKS_MAX);
    outcome->blocked_by.ids =
        sqlite_operations_read_ids(request, blocked_by, &outcome->blocked_by.count);
    struct query chats = query_open_texts(database, SELECT_CHATS, user, SLICE_NONE, SLICE_NONE);
    query_bind_int(&chats, request->input.limit);
    outcome->chats.ids = sqlite_operations_read_ids(request, chats, &outcome->chats.count);
    return LEDGER_OK;
}

enum ledger_status sqlite_users_settings_put(struct database *database,
                                             struct ledger_request *request)
{
    static const char UPSERT_SETTINGS[] =
        "INSERT INTO users (user_id, presence_visibility, last_seen_visibility) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (user_id) DO UPDATE SET presence_visibility = ?2, last_seen_visibility = ?3";
    const struct ledger_request_input *input = &request->input;
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    outcome->previous = read_user_settings(database, input->user);
    outcome->settings = outcome->previous;
    if (input->set_presence)
        outcome->settings.presence = input->settings.presence;
    if (input->set_last_seen)
        outcome->settings.last_seen = input->settings.last_seen;
    struct query query = query_open(database, UPSERT_SETTINGS);
    query_bind(&query, input->user);
    query_bind_int(&query, outcome->settings.presence);
    query_bind_int(&query, outcome->settings.last_seen);
    query_run(&query);
    return LEDGER_OK;
}

static void read_profile_row(struct database *database, struct ledger_profile *profile)
{
    static const char SELECT_USER[] =
        "SELECT presence_visibility, last_seen_visibility, last_seen_ms, presence_version "
        "FROM users WHERE user_id = ?";
    struct query query =
        query_open_texts(database, SELECT_USER, profile->user, SLICE_NONE, SLICE_NONE);
    if (query_next(&query)) {
        profile->settings.presence = (enum ledger_visibility)query_int(&query, 0);
        profile->settings.last_seen = (enum ledger_visibility)query_int(&query, 1);
        profile->last_seen_ms = query_int(&query, 2);
        profile->presence_version = (uint64_t)query_int(&query, 3);
    }
    query_end(&query);
}

enum ledger_status sqlite_users_profiles(struct database *database, struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct ledger_profile *profiles =
        ledger_request_alloc(request, input->id_count * sizeof(*profiles));
    if (!profiles)
        return LEDGER_UNAVAILABLE;
    for (size_t i = 0; i < input->id_count; i++) {
        struct ledger_profile *profile = &profiles[i];
        *profile = (struct ledger_profile){.user = input->ids[i]};
        read_profile_row(database, profile);
        if (!input->user.data)
            continue;
        profile->are_contacts = sqlite_contacts_exist(database, input->user, profile->user);
        profile->blocked_by_viewer = sqlite_blocks_exist(database, input->user, profile->user);
        profile->blocked_by_target = sqlite_blocks_exist(database, profile->user, input->user);
    }
    request->outcome.profiles.profiles = profiles;
    request->outcome.profiles.count = input->id_count;
    return LEDGER_OK;
}

enum ledger_status sqlite_users_last_seen_put(struct database *database,
                                              struct ledger_request *request)
{
    static const char UPSERT_LAST_SEEN[] =
        "INSERT INTO users (user_id, last_seen_ms, presence_version) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (user_id) DO UPDATE SET last_seen_ms = max(last_seen_ms, ?2), "
        "presence_version = max(presence_version, ?3) "
        "WHERE ?2 > last_seen_ms OR ?3 > presence_version";
    int changed = 0;
    for (size_t i = 0; i < request->input.seen_count; i++) {
        const struct ledger_last_seen *seen = &request->input.seen[i];
        struct query query = query_open(database, UPSERT_LAST_SEEN);
        query_bind(&query, seen->user);
        query_bind_int(&query, seen->last_seen_ms);
        query_bind_int(&query, (int64_t)seen->presence_version);
        changed += query_run(&query);
    }
    request->outcome.change.changed = changed > 0;
    return LEDGER_OK;
}
