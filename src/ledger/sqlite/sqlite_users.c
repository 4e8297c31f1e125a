/* Users' settings and last-seen times, their profiles for the privacy engine, and their social graphs. */
#include "base/id_list.h"
#include "ledger/sqlite/sqlite_activity.h"
#include "ledger/sqlite/sqlite_operations.h"

static struct slice copy_optional_text(struct ledger_request *request, struct slice text)
{
    return text.len ? ledger_request_copy(request, text) : SLICE_NONE;
}

static void bind_optional_text(struct query *query, struct slice text)
{
    query_bind(query, text.len ? text : SLICE(""));
}

/* Reads how a user appears, too, if `appearance` is not NULL. */
static struct ledger_settings read_user_settings(struct database *database,
                                                 struct ledger_request *request, struct slice user,
                                                 struct ledger_appearance *appearance)
{
    static const char SELECT_SETTINGS[] =
        "SELECT presence_visibility, last_seen_visibility, group_adds, hides_reads "
        "FROM users WHERE user_id = ?";
    static const char SELECT_SETTINGS_AND_APPEARANCE[] =
        "SELECT presence_visibility, last_seen_visibility, group_adds, hides_reads, display_name, "
        "avatar_url FROM users WHERE user_id = ?";
    struct ledger_settings settings = {.presence = LEDGER_VISIBLE_CONTACTS_ONLY};
    struct query query =
        query_open_texts(database, appearance ? SELECT_SETTINGS_AND_APPEARANCE : SELECT_SETTINGS,
                         user, SLICE_NONE, SLICE_NONE);
    if (query_next(&query)) {
        settings.presence = (enum ledger_visibility)query_int(&query, 0);
        settings.last_seen = (enum ledger_visibility)query_int(&query, 1);
        settings.group_adds = (enum ledger_group_adds)query_int(&query, 2);
        settings.hides_reads = query_int(&query, 3) != 0;
        if (appearance) {
            appearance->display_name = copy_optional_text(request, query_text(&query, 4));
            appearance->avatar_url = copy_optional_text(request, query_text(&query, 5));
        }
    }
    query_end(&query);
    return settings;
}

enum ledger_status sqlite_users_settings_get(struct database *database,
                                             struct ledger_request *request)
{
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    outcome->settings =
        read_user_settings(database, request, request->input.user, &outcome->appearance);
    outcome->previous = outcome->settings;
    return LEDGER_OK;
}

enum ledger_status sqlite_users_appearances(struct database *database,
                                            struct ledger_request *request)
{
    const struct ledger_request_input *input = &request->input;
    struct ledger_appearances_outcome *outcome = &request->outcome.appearances;
    struct ledger_appearance *appearances =
        ledger_request_alloc(request, input->id_count * sizeof(*appearances));
    for (size_t i = 0; appearances && i < input->id_count; i++) {
        appearances[i] = (struct ledger_appearance){0};
        read_user_settings(database, request, input->ids[i], &appearances[i]);
    }
    outcome->appearances = appearances;
    outcome->count = input->id_count;
    return LEDGER_OK;
}

/* Reads all three lists of users at once, because a graph is read with every change of a user without one in the
 * cache. */
static void read_graph_users(struct database *database, struct ledger_request *request,
                             struct ledger_graph_outcome *outcome)
{
    static const char SELECT_USERS[] =
        "SELECT 0, contact_id FROM contacts WHERE user_id = ?1 "
        "UNION ALL SELECT 1, blocked_id FROM blocks WHERE user_id = ?1 "
        "UNION ALL SELECT 2, user_id FROM blocks WHERE blocked_id = ?1";
    struct id_list *lists[] = {&outcome->contacts, &outcome->blocked, &outcome->blocked_by};
    struct ledger_request_array arrays[3] = {0};
    struct query query =
        query_open_texts(database, SELECT_USERS, request->input.user, SLICE_NONE, SLICE_NONE);
    while (query_next(&query) && arrays[2].count < LEDGER_BLOCKS_MAX) {
        struct slice *id =
            ledger_request_array_push(request, &arrays[query_int(&query, 0)], sizeof(*id));
        if (id)
            *id = ledger_request_copy(request, query_text(&query, 1));
    }
    query_end(&query);
    for (size_t i = 0; i < 3; i++) {
        *lists[i] = (struct id_list){arrays[i].items, arrays[i].count};
        id_list_sort(lists[i]);
    }
}

/* Accepted chats come first, so that chats which others force on the user displace none of them. */
enum ledger_status sqlite_users_graph(struct database *database, struct ledger_request *request)
{
    struct ledger_graph_outcome *outcome = &request->outcome.graph;
    outcome->settings = read_user_settings(database, request, request->input.user, NULL);
    read_graph_users(database, request, outcome);
    outcome->chats =
        sqlite_activity_first(database, request, request->input.user, request->input.limit);
    id_list_sort(&outcome->chats);
    return LEDGER_OK;
}

enum ledger_status sqlite_users_settings_put(struct database *database,
                                             struct ledger_request *request)
{
    static const char UPSERT_SETTINGS[] =
        "INSERT INTO users (user_id, display_name, avatar_url, presence_visibility, "
        "  last_seen_visibility, group_adds, hides_reads) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
        "ON CONFLICT (user_id) DO UPDATE SET display_name = ?2, avatar_url = ?3, "
        "  presence_visibility = ?4, last_seen_visibility = ?5, group_adds = ?6, hides_reads = ?7";
    const struct ledger_request_input *input = &request->input;
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    outcome->previous = read_user_settings(database, request, input->user, &outcome->appearance);
    outcome->settings = outcome->previous;
    ledger_request_patch_settings(request);
    struct query query = query_open(database, UPSERT_SETTINGS);
    query_bind(&query, input->user);
    bind_optional_text(&query, outcome->appearance.display_name);
    bind_optional_text(&query, outcome->appearance.avatar_url);
    query_bind_int(&query, outcome->settings.presence);
    query_bind_int(&query, outcome->settings.last_seen);
    query_bind_int(&query, outcome->settings.group_adds);
    query_bind_int(&query, outcome->settings.hides_reads);
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
