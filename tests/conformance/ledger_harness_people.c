/* The operations on users, contacts and blocks. */
#include "conformance/ledger_harness_internal.h"

#include <string.h>

void harness_write_ids(void *arg, const struct ledger_ids_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        harness_add(arg, " %.*s", SLICE_FORMAT(outcome->ids[i]));
}

static const char *const visibilities[] = {"contacts", "everyone", "nobody"};

static void write_settings(void *arg, const struct ledger_settings_outcome *outcome)
{
    if (harness_begin(arg, outcome->status))
        harness_add(arg, " %s %s was %s %s", visibilities[outcome->settings.presence],
                    visibilities[outcome->settings.last_seen],
                    visibilities[outcome->previous.presence],
                    visibilities[outcome->previous.last_seen]);
}

static void add_list(void *arg, const char *name, struct id_list list)
{
    harness_add(arg, " %s:", name);
    for (size_t i = 0; i < list.count; i++)
        harness_add(arg, "%s%.*s", i ? "," : "", SLICE_FORMAT(list.ids[i]));
}

static void write_graph(void *arg, const struct ledger_graph_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, " %s %s", visibilities[outcome->settings.presence],
                visibilities[outcome->settings.last_seen]);
    add_list(arg, "contacts", outcome->contacts);
    add_list(arg, "blocked", outcome->blocked);
    add_list(arg, "blocked_by", outcome->blocked_by);
    add_list(arg, "chats", outcome->chats);
}

static void write_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_profile *profile = &outcome->profiles[i];
        harness_add(
            arg, " %.*s/%s/%s%s%s%s@%lldv%llu", SLICE_FORMAT(profile->user),
            visibilities[profile->settings.presence], visibilities[profile->settings.last_seen],
            profile->are_contacts ? "/contact" : "", profile->blocked_by_viewer ? "/blocks" : "",
            profile->blocked_by_target ? "/blocked" : "", (long long)profile->last_seen_ms,
            (unsigned long long)profile->presence_version);
    }
}

static void write_contact(void *arg, const struct ledger_contact_outcome *outcome)
{
    static const char *const results[] = {"requested", "pending",  "accepted",
                                          "already",   "declined", "withdrawn"};
    if (!harness_begin(arg, outcome->status))
        return;
    const struct ledger_contact_request *request = &outcome->request;
    harness_add(arg, " %s", results[outcome->result]);
    if (request->id.len)
        harness_add(arg, " %.*s", SLICE_FORMAT(request->id));
    harness_add(arg, " %.*s>%.*s%s", SLICE_FORMAT(request->from), SLICE_FORMAT(request->to),
                outcome->tell_other_side ? " tell" : "");
}

static void write_contact_requests(void *arg, const struct ledger_contact_requests_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_contact_request *request = &outcome->requests[i];
        harness_add(arg, " %.*s:%.*s>%.*s", SLICE_FORMAT(request->id), SLICE_FORMAT(request->from),
                    SLICE_FORMAT(request->to));
    }
    harness_add(arg, "%s", outcome->has_more ? " more" : "");
}

static void write_block(void *arg, const struct ledger_block_outcome *outcome)
{
    if (harness_begin(arg, outcome->status))
        harness_add(arg, "%s%s", outcome->changed ? " changed" : "",
                    outcome->contact_removed ? " parted" : "");
}

/* ---- operations ---- */

const char *harness_settings(struct harness *harness, const char *user)
{
    ledger_settings_get(&harness->client, slice_of(user), write_settings, harness);
    return harness_line(harness);
}

static const enum ledger_visibility *visibility(const char *name, enum ledger_visibility *value)
{
    for (unsigned i = 0; name && i < 3; i++)
        if (strcmp(visibilities[i], name) == 0)
            *value = (enum ledger_visibility)i;
    return name ? value : NULL;
}

const char *harness_set(struct harness *harness, const char *user, const char *presence,
                        const char *last_seen)
{
    enum ledger_visibility values[2] = {0};
    struct ledger_settings_patch patch = {.presence = visibility(presence, &values[0]),
                                          .last_seen = visibility(last_seen, &values[1])};
    ledger_settings_put(&harness->client, slice_of(user), &patch, write_settings, harness);
    return harness_line(harness);
}

static void write_appearance(struct harness *harness, const struct ledger_appearance *appearance)
{
    harness_add(harness, " \"%.*s\" <%.*s>", SLICE_FORMAT(appearance->display_name),
                SLICE_FORMAT(appearance->avatar_url));
}

static void write_consent(void *arg, const struct ledger_settings_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    harness_add(arg, " %s %s", outcome->settings.group_adds ? "contacts" : "everyone",
                outcome->settings.hides_reads ? "hides" : "shows");
    write_appearance(arg, &outcome->appearance);
}

const char *harness_consent(struct harness *harness, const char *user, const char *group_adds,
                            const char *reads)
{
    enum ledger_group_adds adds = group_adds && strcmp(group_adds, "contacts") == 0
                                      ? LEDGER_GROUP_ADDS_CONTACTS_ONLY
                                      : LEDGER_GROUP_ADDS_EVERYONE;
    bool hides_reads = reads && strcmp(reads, "hides") == 0;
    struct ledger_settings_patch patch = {.group_adds = group_adds ? &adds : NULL,
                                          .hides_reads = reads ? &hides_reads : NULL};
    ledger_settings_put(&harness->client, slice_of(user), &patch, write_consent, harness);
    return harness_line(harness);
}

const char *harness_appear(struct harness *harness, const char *user, const char *display_name,
                           const char *avatar_url)
{
    struct slice name = display_name ? slice_of(display_name) : SLICE_NONE;
    struct slice url = avatar_url ? slice_of(avatar_url) : SLICE_NONE;
    struct ledger_settings_patch patch = {.display_name = display_name ? &name : NULL,
                                          .avatar_url = avatar_url ? &url : NULL};
    ledger_settings_put(&harness->client, slice_of(user), &patch, write_consent, harness);
    return harness_line(harness);
}

static void write_appearances(void *arg, const struct ledger_appearances_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        write_appearance(arg, &outcome->appearances[i]);
}

const char *harness_appearances(struct harness *harness, const char *users)
{
    struct slice ids[16];
    size_t count = harness_split(users, ids, 16);
    ledger_appearances(&harness->client, ids, count, write_appearances, harness);
    return harness_line(harness);
}

const char *harness_profiles(struct harness *harness, const char *viewer, const char *targets)
{
    struct slice ids[16];
    size_t count = harness_split(targets, ids, 16);
    ledger_profiles(&harness->client, slice_of(viewer), ids, count, write_profiles, harness);
    return harness_line(harness);
}

const char *harness_seen(struct harness *harness, const char *user, int64_t last_seen_ms,
                         uint64_t version)
{
    struct ledger_last_seen seen = {slice_of(user), last_seen_ms, version};
    ledger_last_seen_put(&harness->client, &seen, 1, harness_write_change, harness);
    return harness_line(harness);
}

const char *harness_request_contact(struct harness *harness, const char *id, const char *from,
                                    const char *to)
{
    ledger_contact_request_create(&harness->client, slice_of(id), slice_of(from), slice_of(to),
                                  write_contact, harness);
    return harness_line(harness);
}

const char *harness_accept(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_accept(&harness->client, slice_of(user), slice_of(id), write_contact,
                                  harness);
    return harness_line(harness);
}

const char *harness_decline(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_decline(&harness->client, slice_of(user), slice_of(id), write_contact,
                                   harness);
    return harness_line(harness);
}

const char *harness_withdraw(struct harness *harness, const char *user, const char *id)
{
    ledger_contact_request_withdraw(&harness->client, slice_of(user), slice_of(id), write_contact,
                                    harness);
    return harness_line(harness);
}

const char *harness_contact_requests(struct harness *harness, const char *user,
                                     enum ledger_direction direction, const char *after,
                                     uint32_t limit)
{
    ledger_contact_requests_list(&harness->client, slice_of(user), direction, slice_of(after),
                                 limit, write_contact_requests, harness);
    return harness_line(harness);
}

const char *harness_contacts(struct harness *harness, const char *user)
{
    ledger_contacts_list(&harness->client, slice_of(user), harness_write_ids, harness);
    return harness_line(harness);
}

const char *harness_graph(struct harness *harness, const char *user, uint32_t chats_max)
{
    ledger_graph(&harness->client, slice_of(user), chats_max, write_graph, harness);
    return harness_line(harness);
}

const char *harness_remove(struct harness *harness, const char *user, const char *other)
{
    ledger_contact_remove(&harness->client, slice_of(user), slice_of(other), harness_write_change,
                          harness);
    return harness_line(harness);
}

const char *harness_block(struct harness *harness, const char *user, const char *other)
{
    ledger_block_put(&harness->client, slice_of(user), slice_of(other), write_block, harness);
    return harness_line(harness);
}

const char *harness_unblock(struct harness *harness, const char *user, const char *other)
{
    ledger_block_delete(&harness->client, slice_of(user), slice_of(other), harness_write_change,
                        harness);
    return harness_line(harness);
}

const char *harness_blocks(struct harness *harness, const char *user)
{
    ledger_blocks_list(&harness->client, slice_of(user), harness_write_ids, harness);
    return harness_line(harness);
}

static void write_relations(void *arg, const struct ledger_relations_outcome *outcome)
{
    if (!harness_begin(arg, outcome->status))
        return;
    for (size_t i = 0; i < outcome->count; i++)
        harness_add(arg, " %s%s%s", ledger_status_name(outcome->results[i].status),
                    outcome->results[i].changed ? "/changed" : "",
                    outcome->results[i].contact_removed ? "/removed" : "");
}

const char *harness_relations(struct harness *harness, enum ledger_relation_change change,
                              const char *pairs)
{
    struct slice ids[2 * LEDGER_RELATIONS_MAX];
    size_t count = harness_split(pairs, ids, 2 * LEDGER_RELATIONS_MAX);
    ledger_relations_change(&harness->client, SLICE("application"), change, ids, count / 2,
                            write_relations, harness);
    return harness_line(harness);
}
