#include "support/fake_ledger.h"

#include "base/container.h"

#include <assert.h>
#include <stdio.h>

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

static struct fake_user *have_user(struct fake_ledger *fake, struct slice id)
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

/* ---- operations ---- */

static void answer_profiles(struct fake_ledger *fake, struct ledger_request *request)
{
    size_t count = request->input.id_count;
    struct ledger_profile *profiles = request_alloc(request, count * sizeof(*profiles));
    for (size_t i = 0; profiles && i < count; i++) {
        struct slice id = request->input.ids[i];
        const struct fake_user *user = find_user(fake, id);
        profiles[i] = (struct ledger_profile){
            .user = id,
            .settings = user ? user->settings : fake->initial,
            .are_contacts = are_contacts(fake, request->input.user, id),
            .last_seen_ms = user ? user->last_seen_ms : 0,
            .presence_version = user ? user->presence_version : 0,
        };
    }
    request->outcome.profiles = (struct ledger_profiles_outcome){LEDGER_OK, profiles, count};
}

static void answer_settings(struct fake_ledger *fake, struct ledger_request *request)
{
    struct fake_user *user = have_user(fake, request->input.user);
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
        struct fake_user *user = have_user(fake, seen->user);
        user->last_seen_ms = seen->last_seen_ms;
        user->presence_version = seen->presence_version;
    }
}

static void make_answer(struct fake_ledger *fake, struct ledger_request *request)
{
    switch (request->operation) {
    case LEDGER_PROFILES:
        answer_profiles(fake, request);
        break;
    case LEDGER_SETTINGS_GET:
    case LEDGER_SETTINGS_PUT:
        answer_settings(fake, request);
        break;
    case LEDGER_LAST_SEEN_PUT:
        store_last_seen(fake, request);
        break;
    default:
        request_fail(request, LEDGER_UNAVAILABLE);
        break;
    }
    if (request->exhausted)
        request_fail(request, LEDGER_UNAVAILABLE);
}

/* ---- the backend ---- */

static void hold(struct fake_ledger *fake, struct ledger_request *request)
{
    struct ledger_request **end = &fake->held;
    while (*end)
        end = &(*end)->next;
    *end = request;
    fake->held_count++;
}

static void submit(struct ledger *ledger, struct ledger_request *request)
{
    struct fake_ledger *fake = fake_of(ledger);
    request->next = NULL;
    fake->asked[request->operation]++;
    if (fake->failing != LEDGER_OK)
        request_fail(request, fake->failing);
    else
        make_answer(fake, request);
    if (fake->holding)
        hold(fake, request);
    else
        request_finish(request);
}

static void close_fake(struct ledger *ledger)
{
    fake_ledger_release_all(fake_of(ledger));
}

static const struct ledger_backend BACKEND = {.submit = submit, .close = close_fake};

void fake_ledger_init(struct fake_ledger *fake)
{
    *fake = (struct fake_ledger){
        .ledger = {.backend = &BACKEND},
        .initial = {LEDGER_VISIBLE_EVERYONE, LEDGER_VISIBLE_EVERYONE},
    };
}

void fake_ledger_show(struct fake_ledger *fake, const char *user, enum ledger_visibility presence,
                      enum ledger_visibility last_seen)
{
    have_user(fake, slice_of(user))->settings = (struct ledger_settings){presence, last_seen};
}

void fake_ledger_befriend(struct fake_ledger *fake, const char *a, const char *b)
{
    assert(fake->contact_count < FAKE_LEDGER_CONTACTS_MAX);
    fake->contacts[fake->contact_count][0] = a;
    fake->contacts[fake->contact_count++][1] = b;
}

static void release(struct fake_ledger *fake, struct ledger_request **at)
{
    struct ledger_request *request = *at;
    *at = request->next;
    request->next = NULL;
    fake->held_count--;
    request_finish(request);
}

void fake_ledger_release(struct fake_ledger *fake)
{
    assert(fake->held);
    release(fake, &fake->held);
}

void fake_ledger_release_newest(struct fake_ledger *fake)
{
    struct ledger_request **at = &fake->held;
    assert(fake->held);
    while ((*at)->next)
        at = &(*at)->next;
    release(fake, at);
}

void fake_ledger_release_all(struct fake_ledger *fake)
{
    while (fake->held)
        release(fake, &fake->held);
}
