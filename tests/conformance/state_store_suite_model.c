/*
 * Random operations of several gateways against a model that is too simple to be wrong. With a virtual clock, time
 * passes in small steps, and leases expire between operations; in real time it passes in long steps, after which
 * every lease has expired.
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
    bool shown_by_order;     /* lingers, and the order in which its leases ended decides as what */
    int64_t linger_until_ms; /* INT64_MAX: does not linger */
    int64_t last_seen_ms;
};

struct model {
    struct harness *harness;
    struct random random;
    int64_t grace_ms;
    int64_t passed_ms; /* since the start */
    struct model_user users[USERS];
};

static unsigned connection_number(size_t user, size_t connection)
{
    return (unsigned)(user * CONNECTIONS + connection);
}

/* Derives the shown status from the leases. Returns whether it changed. */
static bool update_shown_status(struct model *model, struct model_user *user)
{
    enum presence_status status = PRESENCE_OFFLINE;
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (user->leases[i].open && status != PRESENCE_ONLINE)
            status = user->leases[i].idle ? PRESENCE_AWAY : PRESENCE_ONLINE;
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

static void note_last_seen(struct model_user *user, int64_t at_ms)
{
    if (at_ms > user->last_seen_ms)
        user->last_seen_ms = at_ms;
}

static void compare_presence(struct model *model, const struct presence *presence,
                             const struct model_user *user)
{
    assert_int_equal(presence->status, user->shown);
    assert_int_equal(presence->in_call, user->in_call);
    if (user->shown != PRESENCE_OFFLINE || user->last_seen_ms == TIME_NONE)
        assert_int_equal(presence->last_seen_ms, TIME_NONE);
    else
        harness_assert_time(model->harness, presence->last_seen_ms, user->last_seen_ms);
}

static void check_transition(struct model *model, struct state_transition transition,
                             const struct model_user *user, bool changed)
{
    assert_int_equal(transition.changed, changed);
    compare_presence(model, &transition.presence, user);
}

static void refresh_lease(struct model *model, struct model_lease *lease)
{
    lease->expires_at_ms = model->passed_ms + model->harness->backend->lease_window_ms;
    lease->last_heartbeat_ms = harness_wall_ms(model->harness);
}

static void step_open(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool idle = random_below(&model->random, 3) == 0;
    refresh_lease(model, &user->leases[c]);
    user->leases[c].open = true;
    user->leases[c].idle = idle;
    bool changed = update_shown_status(model, user);
    check_transition(model,
                     harness_open(model->harness, port, user->id, connection_number(u, c), idle),
                     user, changed);
}

static void step_set_idle(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool idle = random_below(&model->random, 2);
    if (user->leases[c].open)
        user->leases[c].idle = idle;
    bool changed = update_shown_status(model, user);
    check_transition(
        model, harness_set_idle(model->harness, port, user->id, connection_number(u, c), idle),
        user, changed);
}

static void step_set_call(struct model *model, size_t port, size_t u)
{
    struct model_user *user = &model->users[u];
    bool in_call = random_below(&model->random, 2);
    bool changed = user->shown != PRESENCE_OFFLINE && user->in_call != in_call;
    user->in_call = user->shown != PRESENCE_OFFLINE && in_call;
    check_transition(model, harness_set_call(model->harness, port, user->id, in_call), user,
                     changed);
}

static void step_close(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    if (user->leases[c].open)
        note_last_seen(user, harness_wall_ms(model->harness));
    user->leases[c].open = false;
    bool changed = update_shown_status(model, user);
    check_transition(model, harness_close(model->harness, port, user->id, connection_number(u, c)),
                     user, changed);
}

static void step_renew(struct model *model, size_t port, size_t u, size_t c)
{
    struct model_user *user = &model->users[u];
    bool known = harness_renew(model->harness, port, user->id, connection_number(u, c));
    assert_int_equal(known, user->leases[c].open);
    if (known)
        refresh_lease(model, &user->leases[c]);
}

static void step_read(struct model *model, size_t port)
{
    struct slice ids[USERS];
    for (size_t u = 0; u < USERS; u++)
        ids[u] = model->users[u].id;
    harness_read_many(model->harness, port, ids, USERS);
    for (size_t u = 0; u < USERS; u++)
        compare_presence(model, &model->harness->presences[u], &model->users[u]);
}

static void step_list_leases(struct model *model, size_t port, size_t u)
{
    struct model_user *user = &model->users[u];
    size_t open = 0;
    for (size_t c = 0; c < CONNECTIONS; c++)
        open += user->leases[c].open;
    assert_int_equal(harness_leases(model->harness, port, user->id), open);
    for (size_t i = 0; i < model->harness->count; i++) {
        const struct lease *lease = &model->harness->leases[i];
        for (size_t c = 0; c < CONNECTIONS; c++) {
            struct ulid id = harness_connection(connection_number(u, c));
            if (!ulid_equal(&id, &lease->conn_id))
                continue;
            assert_true(user->leases[c].open);
            assert_int_equal(lease->idle, user->leases[c].idle);
        }
    }
}

static void pass_time(struct model *model)
{
    const struct state_store_suite_backend *backend = model->harness->backend;
    int64_t expiry_ms = backend->lease_window_ms + model->grace_ms + 1;
    int64_t duration_ms = backend->tolerance_ms
                              ? expiry_ms
                              : (int64_t)random_below(&model->random, (uint64_t)expiry_ms / 4);
    harness_pass(model->harness, duration_ms);
    model->passed_ms += duration_ms;
}

/* Ends the model's leases and grace that are due. Returns how many ended. */
static size_t expire_model_user(struct model *model, struct model_user *user, bool *goes_offline)
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
        note_last_seen(user, lease->last_heartbeat_ms);
        ended++;
    }
    if (ended)
        update_shown_status(model, user);
    user->shown_by_order = ended > 1 && user->linger_until_ms != INT64_MAX;
    *goes_offline = before != PRESENCE_OFFLINE && user->shown == PRESENCE_OFFLINE;
    return ended;
}

/* Reaps everything that is due, on several gateways in batches. The backend chooses the order in which it reaps one
 * user's leases, and this order decides the status that a lingering user keeps, so the model reads that status. */
static void reap_and_compare(struct model *model)
{
    size_t expected = 0, reaped = 0;
    bool goes_offline[USERS];
    unsigned went_offline[USERS] = {0};
    for (size_t u = 0; u < USERS; u++)
        expected += expire_model_user(model, &model->users[u], &goes_offline[u]);
    for (size_t empty = 0; empty < HARNESS_PORTS;) {
        size_t count = harness_reap(model->harness, random_below(&model->random, HARNESS_PORTS),
                                    1 + random_below(&model->random, 4));
        empty = count ? 0 : empty + 1;
        reaped += count;
        for (size_t i = 0; i < count; i++) {
            const struct state_transition *made = &model->harness->transitions[i];
            size_t u = 0;
            while (u < USERS && !slice_equal(model->users[u].id, made->presence.user_id))
                u++;
            assert_true(u < USERS);
            went_offline[u] += made->changed && made->presence.status == PRESENCE_OFFLINE;
        }
    }
    assert_int_equal(reaped, expected);
    for (size_t u = 0; u < USERS; u++) {
        assert_int_equal(went_offline[u], goes_offline[u]);
        struct model_user *user = &model->users[u];
        if (!user->shown_by_order)
            continue;
        user->shown = harness_read(model->harness, 0, user->id).status;
        assert_true(user->shown == PRESENCE_ONLINE || user->shown == PRESENCE_AWAY);
    }
    step_read(model, 0);
}

static void run_random_step(struct model *model)
{
    size_t port = random_below(&model->random, HARNESS_PORTS);
    size_t u = random_below(&model->random, USERS);
    size_t c = random_below(&model->random, CONNECTIONS);
    uint64_t choice = random_below(&model->random, 100);
    if (choice < 30)
        step_open(model, port, u, c);
    else if (choice < 40)
        step_set_idle(model, port, u, c);
    else if (choice < 45)
        step_set_call(model, port, u);
    else if (choice < 65)
        step_close(model, port, u, c);
    else if (choice < 80)
        step_renew(model, port, u, c);
    else if (choice < 86)
        step_read(model, port);
    else if (choice < 90)
        step_list_leases(model, port, u);
    else if (choice < 95 || model->harness->backend->tolerance_ms == 0)
        reap_and_compare(model);
}

static void run_model(struct harness *harness, int64_t grace_ms, uint64_t seed)
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
            pass_time(model);
            reap_and_compare(model);
        } else {
            run_random_step(model);
        }
    }
    free(model);
}

void state_store_suite_operations_match_a_model(void **state)
{
    run_model(*state, 0, 1);
}

void state_store_suite_operations_match_a_model_with_grace(void **state)
{
    struct harness *harness = *state;
    run_model(harness, harness->backend->offline_grace_ms, 2);
}
