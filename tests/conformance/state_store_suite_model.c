/*
 * Random operations of several gateways against a model that keeps everything in the simplest way. With
 * a clock that is told to move, time passes in small steps and expiries fall between operations; with
 * the machine's, it passes in leaps after which everything has expired.
 */
#include "conformance/state_store_suite_tests.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { USERS = 5, CONNECTIONS = 4, STEPS = 6000, STEPS_IN_REAL_TIME = 600 };

struct model_lease {
    bool open;
    bool idle;
    int64_t expires_at_ms;
    int64_t last_heartbeat_ms;
};

struct model_user {
    char text[16];
    struct slice id;
    struct model_lease leases[CONNECTIONS];
    enum presence_status shown;
    bool in_call;
    bool shown_by_order;     /* lingers as shown between the ends of its last leases */
    int64_t linger_until_ms; /* INT64_MAX: does not */
    int64_t last_seen_ms;
};

struct model {
    struct harness *harness;
    struct random random;
    int64_t grace_ms;
    int64_t passed_ms; /* since the start, as the model counts */
    struct model_user users[USERS];
};

static unsigned connection_of(size_t user, size_t connection)
{
    return (unsigned)(user * CONNECTIONS + connection);
}

static size_t leases_open(const struct model_user *user)
{
    size_t count = 0;
    for (size_t i = 0; i < CONNECTIONS; i++)
        count += user->leases[i].open;
    return count;
}

static enum presence_status merged(const struct model_user *user)
{
    enum presence_status status = PRESENCE_OFFLINE;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (user->leases[i].open && status != PRESENCE_ONLINE)
            status = user->leases[i].idle ? PRESENCE_AWAY : PRESENCE_ONLINE;
    return status;
}

/* Brings what is shown in line with the leases; whether it is different then. */
static bool settle(struct model *model, struct model_user *user)
{
    enum presence_status status = merged(user);
    if (status == PRESENCE_OFFLINE && user->shown != PRESENCE_OFFLINE && model->grace_ms > 0) {
        if (user->linger_until_ms == INT64_MAX)
            user->linger_until_ms = model->passed_ms + model->grace_ms;
        return false;
    }
    user->linger_until_ms = INT64_MAX;
    user->in_call &= status != PRESENCE_OFFLINE;
    bool changed = status != user->shown;
    user->shown = status;
    return changed;
}

static void see(struct model_user *user, int64_t at_ms)
{
    if (at_ms > user->last_seen_ms)
        user->last_seen_ms = at_ms;
}

static void compare(struct model *model, const struct presence *presence,
                    const struct model_user *user)
{
    assert_int_equal(presence->status, user->shown);
    assert_int_equal(presence->in_call, user->in_call);
    if (user->shown != PRESENCE_OFFLINE || user->last_seen_ms == TIME_NONE)
        assert_int_equal(presence->last_seen_ms, TIME_NONE);
    else
        harness_assert_time(model->harness, presence->last_seen_ms, user->last_seen_ms);
}

static void check(struct model *model, struct state_transition transition,
                  const struct model_user *user, bool changed)
{
    assert_int_equal(transition.changed, changed);
    compare(model, &transition.presence, user);
}

static void refresh(struct model *model, struct model_lease *lease)
{
    lease->expires_at_ms = model->passed_ms + model->harness->backend->lease_window_ms;
    lease->last_heartbeat_ms = harness_wall_ms(model->harness);
}

static void open_one(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool idle = random_below(&model->random, 3) == 0;
    refresh(model, &user->leases[c]);
    user->leases[c].open = true;
    user->leases[c].idle = idle;
    bool changed = settle(model, user);
    check(model, harness_open(model->harness, port, user->id, connection_of(u, c), idle), user,
          changed);
}

static void set_idle_one(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool idle = random_below(&model->random, 2);
    if (user->leases[c].open)
        user->leases[c].idle = idle;
    bool changed = settle(model, user);
    check(model, harness_set_idle(model->harness, port, user->id, connection_of(u, c), idle), user,
          changed);
}

static void set_call_one(struct model *model, size_t port, size_t u)
{
    struct model_user *user = &model->users[u];
    bool in_call = random_below(&model->random, 2);
    bool changed = user->shown != PRESENCE_OFFLINE && user->in_call != in_call;
    user->in_call = user->shown != PRESENCE_OFFLINE && in_call;
    check(model, harness_set_call(model->harness, port, user->id, in_call), user, changed);
}

static void close_one(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    if (user->leases[c].open)
        see(user, harness_wall_ms(model->harness));
    user->leases[c].open = false;
    bool changed = settle(model, user);
    check(model, harness_close(model->harness, port, user->id, connection_of(u, c)), user, changed);
}

static void renew_one(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool known = harness_renew(model->harness, port, user->id, connection_of(u, c));
    assert_int_equal(known, user->leases[c].open);
    if (known)
        refresh(model, &user->leases[c]);
}

static void read_all(struct model *model, size_t port)
{
    struct slice ids[USERS];
    for (size_t u = 0; u < USERS; u++)
        ids[u] = model->users[u].id;
    harness_read_many(model->harness, port, ids, USERS);
    for (size_t u = 0; u < USERS; u++)
        compare(model, &model->harness->presences[u], &model->users[u]);
}

static void list_leases(struct model *model, size_t port, size_t u)
{
    struct model_user *user = &model->users[u];
    assert_int_equal(harness_leases(model->harness, port, user->id), leases_open(user));
    for (size_t i = 0; i < model->harness->count; i++) {
        const struct lease *lease = &model->harness->leases[i];
        for (size_t c = 0; c < CONNECTIONS; c++) {
            struct ulid id = harness_connection(connection_of(u, c));
            if (!ulid_equal(&id, &lease->conn_id))
                continue;
            assert_true(user->leases[c].open);
            assert_int_equal(lease->idle, user->leases[c].idle);
        }
    }
}

static void pass(struct model *model)
{
    const struct state_store_suite_backend *backend = model->harness->backend;
    int64_t leap_ms = backend->lease_window_ms + model->grace_ms + 1;
    int64_t duration_ms = backend->tolerance_ms
                              ? leap_ms
                              : (int64_t)random_below(&model->random, (uint64_t)leap_ms / 4);
    harness_pass(model->harness, duration_ms);
    model->passed_ms += duration_ms;
}

/* Ends what is due; the number of leases and graces ended. */
static size_t expire(struct model *model, struct model_user *user, bool *goes_offline)
{
    size_t ended = 0;
    enum presence_status before = user->shown;
    if (user->linger_until_ms <= model->passed_ms) {
        user->shown = PRESENCE_OFFLINE;
        user->in_call = false;
        user->linger_until_ms = INT64_MAX;
        ended++;
    }
    for (size_t c = 0; c < CONNECTIONS; c++) {
        struct model_lease *lease = &user->leases[c];
        if (!lease->open || lease->expires_at_ms > model->passed_ms)
            continue;
        lease->open = false;
        see(user, lease->last_heartbeat_ms);
        ended++;
    }
    if (ended)
        settle(model, user);
    user->shown_by_order = ended > 1 && user->linger_until_ms != INT64_MAX;
    *goes_offline = before != PRESENCE_OFFLINE && user->shown == PRESENCE_OFFLINE;
    return ended;
}

static size_t user_named(const struct model *model, struct slice id)
{
    size_t u = 0;
    while (u < USERS && !slice_equal(model->users[u].id, id))
        u++;
    assert_true(u < USERS);
    return u;
}

static void learn_shown(struct model *model, struct model_user *user)
{
    user->shown = harness_read(model->harness, 0, user->id).status;
    assert_true(user->shown == PRESENCE_ONLINE || user->shown == PRESENCE_AWAY);
}

/* Reaps all there is, by several gateways in batches. In which order one user's leases are reaped is the
 * backend's choice, and so is what is shown in between; how it ends is not. */
static void reap_all(struct model *model)
{
    size_t expected = 0, reaped = 0;
    bool goes_offline[USERS];
    unsigned went_offline[USERS] = {0};
    for (size_t u = 0; u < USERS; u++)
        expected += expire(model, &model->users[u], &goes_offline[u]);
    for (size_t empty = 0; empty < HARNESS_PORTS;) {
        size_t count = harness_reap(model->harness, random_below(&model->random, HARNESS_PORTS),
                                    1 + random_below(&model->random, 4));
        empty = count ? 0 : empty + 1;
        reaped += count;
        for (size_t i = 0; i < count; i++) {
            const struct state_transition *made = &model->harness->transitions[i];
            if (made->changed && made->presence.status == PRESENCE_OFFLINE)
                went_offline[user_named(model, made->presence.user_id)]++;
        }
    }
    assert_int_equal(reaped, expected);
    for (size_t u = 0; u < USERS; u++) {
        assert_int_equal(went_offline[u], goes_offline[u]);
        if (model->users[u].shown_by_order)
            learn_shown(model, &model->users[u]);
    }
    read_all(model, 0);
}

static void step(struct model *model)
{
    size_t port = random_below(&model->random, HARNESS_PORTS);
    size_t u = random_below(&model->random, USERS);
    size_t c = random_below(&model->random, CONNECTIONS);
    uint64_t choice = random_below(&model->random, 100);
    if (choice < 30)
        open_one(model, port, u, c);
    else if (choice < 40)
        set_idle_one(model, port, u, c);
    else if (choice < 45)
        set_call_one(model, port, u);
    else if (choice < 65)
        close_one(model, port, u, c);
    else if (choice < 80)
        renew_one(model, port, u, c);
    else if (choice < 86)
        read_all(model, port);
    else if (choice < 90)
        list_leases(model, port, u);
    else if (choice < 95 || model->harness->backend->tolerance_ms == 0)
        reap_all(model);
}

static void run(struct harness *harness, int64_t grace_ms, uint64_t seed)
{
    struct model *model = calloc(1, sizeof(*model));
    bool exact = harness->backend->tolerance_ms == 0;
    model->harness = harness;
    model->grace_ms = grace_ms;
    random_init_seeded(&model->random, seed);
    for (size_t u = 0; u < USERS; u++) {
        struct model_user *user = &model->users[u];
        user->id = (struct slice){user->text,
                                  (size_t)snprintf(user->text, sizeof(user->text), "model-%zu", u)};
        user->shown = PRESENCE_OFFLINE;
        user->linger_until_ms = INT64_MAX;
        user->last_seen_ms = TIME_NONE;
    }
    for (int i = 0; i < (exact ? STEPS : STEPS_IN_REAL_TIME); i++) {
        if (exact ? random_below(&model->random, 4) == 0 : i % 100 == 99) {
            pass(model);
            reap_all(model);
        } else {
            step(model);
        }
    }
    free(model);
}

void state_store_suite_operations_follow_a_model(void **state)
{
    run(*state, 0, 1);
}

void state_store_suite_operations_follow_a_model_with_grace(void **state)
{
    struct harness *harness = *state;
    run(harness, harness->backend->offline_grace_ms, 2);
}
