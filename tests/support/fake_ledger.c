#include "support/fake_ledger.h"

#include "base/container.h"
#include "base/id_list.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_ledger *fake_of(struct ledger *ledger)
{
    return CONTAINER_OF(ledger, struct fake_ledger, ledger);
}

static struct fake_user *find_user(struct fake_ledger *fake, struct slice id)
{
    for (size_t i = 0; i < fake->user_count; i++)
        if (slice_is(id, fake->users[i].id))
            return &fake->users[i];
    return NULL;
}

static struct fake_user *find_or_add_user(struct fake_ledger *fake, struct slice id)
{
    struct fake_user *known = find_user(fake, id);
    if (known)
        return known;
    assert(fake->user_count < FAKE_LEDGER_USERS_MAX);
    struct fake_user *user = &fake->users[fake->user_count++];
    snprintf(user->id, sizeof(user->id), "%.*s", SLICE_FORMAT(id));
    user->settings = fake->initial;
    return user;
}

static bool are_contacts(const struct fake_ledger *fake, struct slice a, struct slice b)
{
    for (size_t i = 0; i < fake->contact_count; i++) {
        const char *const *pair = fake->contacts[i];
        if ((slice_is(a, pair[0]) && slice_is(b, pair[1])) ||
            (slice_is(a, pair[1]) && slice_is(b, pair[0])))
            return true;
    }
    return false;
}

static bool has_blocked(const struct fake_ledger *fake, struct slice user, struct slice other)
{
    for (size_t i = 0; i < fake->block_count; i++)
        if (slice_is(user, fake->blocks[i][0]) && slice_is(other, fake->blocks[i][1]))
            return true;
    return false;
}

/* ---- operations ---- */

static void answer_profiles(struct fake_ledger *fake, struct ledger_request *request)
{
    size_t count = request->input.id_count;
    struct ledger_profile *profiles = ledger_request_alloc(request, count * sizeof(*profiles));
    for (size_t i = 0; profiles && i < count; i++) {
        struct slice id = request->input.ids[i];
        const struct fake_user *user = find_user(fake, id);
        profiles[i] = (struct ledger_profile){
            .user = id,
            .settings = user ? user->settings : fake->initial,
            .are_contacts = are_contacts(fake, request->input.user, id),
            .blocked_by_viewer = has_blocked(fake, request->input.user, id),
            .blocked_by_target = has_blocked(fake, id, request->input.user),
            .last_seen_ms = user ? user->last_seen_ms : 0,
            .presence_version = user ? user->presence_version : 0,
        };
    }
    request->outcome.profiles = (struct ledger_profiles_outcome){LEDGER_OK, profiles, count};
}

static void answer_settings(struct fake_ledger *fake, struct ledger_request *request)
{
    struct fake_user *user = find_or_add_user(fake, request->input.user);
    struct ledger_settings_outcome *outcome = &request->outcome.settings;
    outcome->previous = user->settings;
    if (request->input.set_presence)
        user->settings.presence = request->input.settings.presence;
    if (request->input.set_last_seen)
        user->settings.last_seen = request->input.settings.last_seen;
    outcome->settings = user->settings;
}

static void store_last_seen(struct fake_ledger *fake, struct ledger_request *request)
{
    for (size_t i = 0; i < request->input.seen_count; i++) {
        const struct ledger_last_seen *seen = &request->input.seen[i];
        struct fake_user *user = find_or_add_user(fake, seen->user);
        user->last_seen_ms = seen->last_seen_ms;
        user->presence_version = seen->presence_version;
    }
}

enum pair_sides { FIRST_SIDE = 1, SECOND_SIDE = 2, BOTH_SIDES = 3 };

/* Lists the users paired with the request's user, who stands on one of these sides of the pair. */
static struct id_list list_paired_users(struct ledger_request *request,
                                        const char *const (*pairs)[2], size_t pair_count,
                                        enum pair_sides sides)
{
    struct slice *ids = ledger_request_alloc(request, (2 * pair_count + 1) * sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; ids && i < pair_count; i++)
        for (int side = 0; side < 2; side++)
            if ((sides & (1 << side)) && slice_is(request->input.user, pairs[i][side]))
                ids[count++] = ledger_request_copy(request, slice_of(pairs[i][!side]));
    if (ids)
        id_list_sort(&(struct id_list){ids, count});
    return (struct id_list){ids, count};
}

static void answer_pairs(struct ledger_request *request, const char *const (*pairs)[2],
                         size_t pair_count, enum pair_sides sides)
{
    struct id_list list = list_paired_users(request, pairs, pair_count, sides);
    request->outcome.ids = (struct ledger_ids_outcome){LEDGER_OK, list.ids, list.count};
}

/* ---- chats ---- */

static struct slice *list_members(const struct fake_ledger *fake, struct ledger_request *request,
                                  struct slice chat, size_t *count)
{
    struct slice *ids = ledger_request_alloc(request, (fake->member_count + 1) * sizeof(*ids));
    *count = 0;
    for (size_t i = 0; ids && i < fake->member_count; i++)
        if (slice_is(chat, fake->members[i].chat))
            ids[(*count)++] = ledger_request_copy(request, slice_of(fake->members[i].user));
    if (ids)
        id_list_sort(&(struct id_list){ids, *count});
    return ids;
}

static enum ledger_status check_fake_access(const struct fake_ledger *fake, struct slice chat,
                                            struct slice user)
{
    for (size_t i = 0; i < fake->member_count; i++)
        if (slice_is(chat, fake->members[i].chat) &&
            (!user.data || slice_is(user, fake->members[i].user)))
            return LEDGER_OK;
    return LEDGER_NOT_FOUND;
}

static void answer_chat(const struct fake_ledger *fake, struct ledger_request *request)
{
    struct ledger_chat_outcome *outcome = &request->outcome.chat;
    *outcome = (struct ledger_chat_outcome){
        .status = check_fake_access(fake, request->input.chat, request->input.user),
        .chat.id = request->input.chat,
    };
    outcome->chat.members =
        list_members(fake, request, request->input.chat, &outcome->chat.member_count);
}

static void answer_chats(const struct fake_ledger *fake, struct ledger_request *request)
{
    struct ledger_chat *chats =
        ledger_request_alloc(request, (fake->member_count + 1) * sizeof(*chats));
    size_t count = 0;
    for (size_t i = 0; chats && i < fake->member_count; i++)
        if (slice_is(request->input.user, fake->members[i].user))
            chats[count++] = (struct ledger_chat){
                .id = ledger_request_copy(request, slice_of(fake->members[i].chat))};
    request->outcome.chats = (struct ledger_chats_outcome){LEDGER_OK, chats, count, false};
}

static void answer_graph(struct fake_ledger *fake, struct ledger_request *request)
{
    struct slice *chats = ledger_request_alloc(request, (fake->member_count + 1) * sizeof(*chats));
    size_t count = 0;
    for (size_t i = 0; chats && i < fake->member_count; i++)
        if (slice_is(request->input.user, fake->members[i].user))
            chats[count++] = ledger_request_copy(request, slice_of(fake->members[i].chat));
    const struct fake_user *user = find_user(fake, request->input.user);
    request->outcome.graph = (struct ledger_graph_outcome){
        .settings = user ? user->settings : fake->initial,
        .contacts = list_paired_users(request, fake->contacts, fake->contact_count, BOTH_SIDES),
        .blocked = list_paired_users(request, fake->blocks, fake->block_count, FIRST_SIDE),
        .blocked_by = list_paired_users(request, fake->blocks, fake->block_count, SECOND_SIDE),
        .chats = {chats, count},
    };
}

/* All changes succeed, and nothing is remembered of them. */
static void answer_relations(const struct fake_ledger *fake, struct ledger_request *request)
{
    size_t count = request->input.id_count / 2;
    struct ledger_relation_result *results =
        ledger_request_alloc(request, count * sizeof(*results));
    if (!fake->answers_all || !results) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        return;
    }
    for (size_t i = 0; i < count; i++)
        results[i] = (struct ledger_relation_result){.status = LEDGER_OK, .changed = true};
    request->outcome.relations =
        (struct ledger_relations_outcome){.results = results, .count = count};
}

static void make_fake_answer(struct fake_ledger *fake, struct ledger_request *request)
{
    switch (request->operation) {
    case LEDGER_PROFILES:
        answer_profiles(fake, request);
        break;
    case LEDGER_SETTINGS_GET:
    case LEDGER_SETTINGS_PUT:
        answer_settings(fake, request);
        break;
    case LEDGER_GRAPH:
        answer_graph(fake, request);
        break;
    case LEDGER_LAST_SEEN_PUT:
        store_last_seen(fake, request);
        break;
    case LEDGER_CONTACTS_LIST:
        answer_pairs(request, fake->contacts, fake->contact_count, BOTH_SIDES);
        break;
    case LEDGER_BLOCKS_LIST:
        answer_pairs(request, fake->blocks, fake->block_count, FIRST_SIDE);
        break;
    case LEDGER_CHAT_GET:
        answer_chat(fake, request);
        break;
    case LEDGER_CHATS_LIST:
        answer_chats(fake, request);
        break;
    case LEDGER_CHAT_MEMBER_CHECK:
        request->outcome.change.status =
            check_fake_access(fake, request->input.chat, request->input.user);
        break;
    case LEDGER_REVOCATIONS_LIST: /* nobody is revoked */
        break;
    case LEDGER_RELATIONS_CHANGE:
        answer_relations(fake, request);
        break;
    default:
        if (!fake->answers_all)
            ledger_request_fail(request, LEDGER_UNAVAILABLE);
        break;
    }
    if (request->exhausted)
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
}

/* ---- the backend ---- */

static void hold_fake_answer(struct fake_ledger *fake, struct ledger_request *request)
{
    struct ledger_request **end = &fake->held;
    while (*end)
        end = &(*end)->next;
    *end = request;
    fake->held_count++;
}

static void fake_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct fake_ledger *fake = fake_of(ledger);
    request->next = NULL;
    fake->submitted[request->operation]++;
    if (fake->failing != LEDGER_OK)
        ledger_request_fail(request, fake->failing);
    else
        make_fake_answer(fake, request);
    if (fake->holding)
        hold_fake_answer(fake, request);
    else
        ledger_request_finish(request);
}

static void fake_ledger_close(struct ledger *ledger)
{
    fake_ledger_release_all(fake_of(ledger));
}

static const struct ledger_backend BACKEND = {.submit = fake_ledger_submit,
                                              .close = fake_ledger_close};

void fake_ledger_init(struct fake_ledger *fake)
{
    *fake = (struct fake_ledger){
        .ledger = {.backend = &BACKEND},
        .initial = {.presence = LEDGER_VISIBLE_EVERYONE, .last_seen = LEDGER_VISIBLE_EVERYONE},
    };
}

void fake_ledger_show(struct fake_ledger *fake, const char *user, enum ledger_visibility presence,
                      enum ledger_visibility last_seen)
{
    find_or_add_user(fake, slice_of(user))->settings =
        (struct ledger_settings){.presence = presence, .last_seen = last_seen};
}

void fake_ledger_befriend(struct fake_ledger *fake, const char *a, const char *b)
{
    assert(fake->contact_count < FAKE_LEDGER_CONTACTS_MAX);
    fake->contacts[fake->contact_count][0] = a;
    fake->contacts[fake->contact_count++][1] = b;
}

void fake_ledger_block(struct fake_ledger *fake, const char *user, const char *other)
{
    assert(fake->block_count < FAKE_LEDGER_CONTACTS_MAX);
    fake->blocks[fake->block_count][0] = user;
    fake->blocks[fake->block_count++][1] = other;
}

void fake_ledger_join(struct fake_ledger *fake, const char *chat, const char *user)
{
    assert(fake->member_count < FAKE_LEDGER_MEMBERS_MAX);
    struct fake_member *member = &fake->members[fake->member_count++];
    snprintf(member->chat, sizeof(member->chat), "%s", chat);
    snprintf(member->user, sizeof(member->user), "%s", user);
}

void fake_ledger_leave(struct fake_ledger *fake, const char *chat, const char *user)
{
    for (size_t i = fake->member_count; i-- > 0;)
        if (strcmp(fake->members[i].chat, chat) == 0 && strcmp(fake->members[i].user, user) == 0)
            fake->members[i] = fake->members[--fake->member_count];
}

static void release_fake_answer(struct fake_ledger *fake, struct ledger_request **at)
{
    struct ledger_request *request = *at;
    *at = request->next;
    request->next = NULL;
    fake->held_count--;
    ledger_request_finish(request);
}

void fake_ledger_release(struct fake_ledger *fake)
{
    assert(fake->held);
    release_fake_answer(fake, &fake->held);
}

void fake_ledger_release_newest(struct fake_ledger *fake)
{
    struct ledger_request **at = &fake->held;
    assert(fake->held);
    while ((*at)->next)
        at = &(*at)->next;
    release_fake_answer(fake, at);
}

void fake_ledger_release_all(struct fake_ledger *fake)
{
    while (fake->held)
        release_fake_answer(fake, &fake->held);
}
