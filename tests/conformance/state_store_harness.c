#include "conformance/state_store_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

void harness_start(struct harness *harness, const struct state_store_suite_backend *backend,
                   int64_t grace_ms)
{
    memset(harness, 0, sizeof(*harness));
    harness->backend = backend;
    backend->start(backend->context, grace_ms);
    for (size_t i = 0; i < HARNESS_PORTS; i++) {
        harness->ports[i] = backend->port(backend->context);
        assert_non_null(harness->ports[i]);
        assert_true(state_available(harness->ports[i]));
    }
}

void harness_stop(struct harness *harness)
{
    for (size_t i = 0; i < HARNESS_PORTS; i++)
        state_store_free(&harness->ports[i]);
    harness->backend->stop(harness->backend->context);
}

struct ulid harness_connection(unsigned number)
{
    struct ulid id = {{0x01, 0x8b, 0xcf, 0xe5, 0x68, 0x00}};
    memcpy(id.bytes + 8, &number, sizeof(number));
    return id;
}

struct slice harness_gateway(size_t port)
{
    static const char *const NAMES[HARNESS_PORTS] = {"gateway-0", "gateway-1", "gateway-2"};
    return slice_of(NAMES[port]);
}

void harness_pass(struct harness *harness, int64_t duration_ms)
{
    harness->backend->pass(harness->backend->context, duration_ms);
}

int64_t harness_wall_ms(const struct harness *harness)
{
    return harness->backend->wall_ms(harness->backend->context);
}

void harness_assert_time(const struct harness *harness, int64_t actual_ms, int64_t expected_ms)
{
    assert_true(actual_ms >= expected_ms - harness->backend->tolerance_ms);
    assert_true(actual_ms <= expected_ms + harness->backend->tolerance_ms);
}

/* ---- one operation, one answer ---- */

/* An operation may take long on a busy machine. */
static void assert_happened_during_operation(const struct harness *harness, int64_t at_ms)
{
    assert_true(at_ms >= harness->began_ms - harness->backend->tolerance_ms);
    assert_true(at_ms <= harness_wall_ms(harness) + harness->backend->tolerance_ms);
}

static void begin_operation(struct harness *harness)
{
    assert_false(harness->waiting);
    harness->waiting = true;
    harness->began_ms = harness_wall_ms(harness);
    harness->count = 0;
    harness->texts_len = 0;
}

static void note_answer(struct harness *harness, enum state_status status, size_t count)
{
    assert_true(harness->waiting); /* false for a second answer */
    assert_int_equal(status, STATE_OK);
    assert_true(count <= HARNESS_ANSWERS_MAX);
    harness->waiting = false;
    harness->count = count;
}

static void await_answer(struct harness *harness)
{
    time_t until = time(NULL) + HARNESS_PATIENCE_SECONDS;
    while (harness->waiting && harness->backend->poll && time(NULL) < until)
        harness->backend->poll(harness->backend->context);
    assert_false(harness->waiting);
}

static struct slice copy_text(struct harness *harness, struct slice text)
{
    char *copy = harness->texts + harness->texts_len;
    assert_true(harness->texts_len + text.len <= sizeof(harness->texts));
    if (text.len)
        memcpy(copy, text.data, text.len);
    harness->texts_len += text.len;
    return (struct slice){copy, text.len};
}

/* ---- versions ---- */

static void check_version(struct harness *harness, const struct presence *presence, bool changed)
{
    struct harness_user *user = NULL;
    size_t known =
        harness->user_count < HARNESS_USERS_MAX ? harness->user_count : HARNESS_USERS_MAX;
    for (size_t i = 0; i < known && !user; i++)
        if (slice_equal((struct slice){harness->users[i].id, harness->users[i].id_len},
                        presence->user_id))
            user = &harness->users[i];
    if (!user) {
        user = &harness->users[harness->user_count++ % HARNESS_USERS_MAX];
        memcpy(user->id, presence->user_id.data, presence->user_id.len);
        user->id_len = presence->user_id.len;
    } else if (changed) {
        assert_true(presence->version > user->version);
    } else {
        assert_int_equal(presence->version, user->version);
    }
    user->version = presence->version;
}

/* ---- leases ---- */

static void on_transition(void *arg, enum state_status status,
                          const struct state_transition *transition)
{
    struct harness *harness = arg;
    note_answer(harness, status, 1);
    harness->transitions[0] = *transition;
    harness->transitions[0].presence.user_id = copy_text(harness, transition->presence.user_id);
    harness->transitions[0].displaced_gateway = copy_text(harness, transition->displaced_gateway);
}

static struct state_transition await_transition(struct harness *harness, struct slice user)
{
    await_answer(harness);
    const struct state_transition *transition = &harness->transitions[0];
    assert_true(slice_equal(transition->presence.user_id, user));
    assert_happened_during_operation(harness, transition->at_ms);
    check_version(harness, &transition->presence, transition->changed);
    return *transition;
}

static struct lease make_lease(const struct harness *harness, size_t port, struct slice user,
                               unsigned connection, bool idle)
{
    struct ulid id = harness_connection(connection);
    return (struct lease){
        .conn_id = id,
        .user_id = user,
        .device_id = SLICE("device"),
        .gateway_id = harness_gateway(port),
        .connected_at_ms = ulid_time_ms(&id),
        .last_heartbeat_ms = harness_wall_ms(harness),
        .idle = idle,
    };
}

struct state_transition harness_open(struct harness *harness, size_t port, struct slice user,
                                     unsigned connection, bool idle)
{
    struct lease lease = make_lease(harness, port, user, connection, idle);
    begin_operation(harness);
    state_open(harness->ports[port], &lease, on_transition, harness);
    return await_transition(harness, user);
}

struct state_transition harness_open_limited(struct harness *harness, size_t port,
                                             struct slice user, unsigned connection, uint32_t max,
                                             unsigned silent, int64_t silent_ms)
{
    struct lease lease = make_lease(harness, port, user, connection, false);
    lease.user_leases_max = max;
    if (silent) {
        lease.silent_conn_id = harness_connection(silent);
        lease.silent_heard_ms = harness_wall_ms(harness) - silent_ms;
    }
    begin_operation(harness);
    state_open(harness->ports[port], &lease, on_transition, harness);
    return await_transition(harness, user);
}

struct state_transition harness_set_idle(struct harness *harness, size_t port, struct slice user,
                                         unsigned connection, bool idle)
{
    struct ulid id = harness_connection(connection);
    begin_operation(harness);
    state_set_idle(harness->ports[port], user, &id, idle, on_transition, harness);
    return await_transition(harness, user);
}

struct state_transition harness_close(struct harness *harness, size_t port, struct slice user,
                                      unsigned connection)
{
    struct ulid id = harness_connection(connection);
    begin_operation(harness);
    state_close(harness->ports[port], user, &id, on_transition, harness);
    return await_transition(harness, user);
}

struct state_transition harness_settle(struct harness *harness, size_t port, struct slice user,
                                       unsigned connection, int64_t left_at_ms)
{
    struct state_claim claim = {.user_id = user,
                                .conn_id = harness_connection(connection),
                                .left_at_ms = left_at_ms,
                                .was_connected = true};
    begin_operation(harness);
    state_settle(harness->ports[port], &claim, on_transition, harness);
    return await_transition(harness, user);
}

struct state_transition harness_set_call(struct harness *harness, size_t port, struct slice user,
                                         bool in_call)
{
    begin_operation(harness);
    state_set_call(harness->ports[port], user, in_call, on_transition, harness);
    return await_transition(harness, user);
}

/* One of several operations that are pending at once. */
struct pipelined_operation {
    struct harness *harness;
    size_t index;
};

static void on_pipelined_transition(void *arg, enum state_status status,
                                    const struct state_transition *transition)
{
    const struct pipelined_operation *step = arg;
    struct harness *harness = step->harness;
    assert_int_equal(status, STATE_OK);
    harness->transitions[step->index] = *transition;
    harness->transitions[step->index].presence.user_id = SLICE_NONE;
    if (++harness->count == HARNESS_PIPELINED)
        note_answer(harness, status, HARNESS_PIPELINED);
}

void harness_open_idle_close(struct harness *harness, size_t port, struct slice user,
                             unsigned connection)
{
    struct lease lease = make_lease(harness, port, user, connection, false);
    struct state_store *store = harness->ports[port];
    struct pipelined_operation steps[HARNESS_PIPELINED] = {
        {harness, 0}, {harness, 1}, {harness, 2}};
    begin_operation(harness);
    state_open(store, &lease, on_pipelined_transition, &steps[0]);
    state_set_idle(store, user, &lease.conn_id, true, on_pipelined_transition, &steps[1]);
    state_close(store, user, &lease.conn_id, on_pipelined_transition, &steps[2]);
    await_answer(harness);
}

struct pending_renewal {
    struct harness *harness;
    struct lease_renewal *renewals;
};

static void on_renewed(void *arg, enum state_status status, const struct lease_renewal *renewals,
                       size_t count)
{
    struct pending_renewal *pending_renewal = arg;
    note_answer(pending_renewal->harness, status, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(ulid_equal(&renewals[i].conn_id, &pending_renewal->renewals[i].conn_id));
        pending_renewal->renewals[i].lost = renewals[i].lost;
    }
}

void harness_renew_many(struct harness *harness, size_t port, struct lease_renewal *renewals,
                        size_t count)
{
    struct pending_renewal pending_renewal = {harness, renewals};
    begin_operation(harness);
    state_renew(harness->ports[port], renewals, count, on_renewed, &pending_renewal);
    await_answer(harness);
    assert_int_equal(harness->count, count);
}

bool harness_renew(struct harness *harness, size_t port, struct slice user, unsigned connection)
{
    struct lease_renewal renewal = {.conn_id = harness_connection(connection),
                                    .user_id = user,
                                    .last_heartbeat_ms = harness_wall_ms(harness)};
    harness_renew_many(harness, port, &renewal, 1);
    return !renewal.lost;
}

/* ---- reading ---- */

static void on_presences_read(void *arg, enum state_status status, const struct presence *presences,
                              size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, count);
    for (size_t i = 0; i < count; i++) {
        harness->presences[i] = presences[i];
        harness->presences[i].user_id = copy_text(harness, presences[i].user_id);
    }
}

void harness_read_many(struct harness *harness, size_t port, const struct slice *users,
                       size_t count)
{
    begin_operation(harness);
    state_read(harness->ports[port], users, count, on_presences_read, harness);
    await_answer(harness);
    assert_int_equal(harness->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equal(harness->presences[i].user_id, users[i]));
        check_version(harness, &harness->presences[i], false);
    }
}

struct presence harness_read(struct harness *harness, size_t port, struct slice user)
{
    harness_read_many(harness, port, &user, 1);
    return harness->presences[0];
}

static void on_leases_listed(void *arg, enum state_status status, const struct lease *leases,
                             size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, count);
    for (size_t i = 0; i < count; i++) {
        struct lease *kept = &harness->leases[i];
        *kept = leases[i];
        kept->user_id = copy_text(harness, leases[i].user_id);
        kept->device_id = copy_text(harness, leases[i].device_id);
        kept->gateway_id = copy_text(harness, leases[i].gateway_id);
    }
}

size_t harness_leases(struct harness *harness, size_t port, struct slice user)
{
    begin_operation(harness);
    state_leases(harness->ports[port], user, on_leases_listed, harness);
    await_answer(harness);
    return harness->count;
}

static void on_lease_found(void *arg, enum state_status status, const struct lease *lease)
{
    on_leases_listed(arg, status, lease, lease ? 1 : 0);
}

const struct lease *harness_find(struct harness *harness, size_t port, unsigned connection)
{
    struct ulid id = harness_connection(connection);
    begin_operation(harness);
    state_find(harness->ports[port], &id, on_lease_found, harness);
    await_answer(harness);
    return harness->count ? &harness->leases[0] : NULL;
}

static void on_routes_found(void *arg, enum state_status status, const struct state_routes *routes)
{
    struct harness *harness = arg;
    note_answer(harness, status, routes ? routes->count : 0);
    harness->count = 0;
    for (size_t i = 0; routes && i < routes->count; i++) {
        const struct state_route *route = &routes->items[i];
        assert_true(route->count > 0);
        struct slice gateway = copy_text(harness, route->gateway_id);
        for (size_t j = 0; j < i; j++)
            assert_false(slice_equal(routes->items[j].gateway_id, gateway));
        for (size_t j = 0; j < route->count; j++)
            harness->routes[harness->count++] =
                (struct harness_route){gateway, copy_text(harness, route->users[j])};
    }
}

size_t harness_routes(struct harness *harness, size_t port, const struct slice *users, size_t count)
{
    begin_operation(harness);
    state_routes(harness->ports[port], users, count, on_routes_found, harness);
    await_answer(harness);
    return harness->count;
}

bool harness_routed(const struct harness *harness, size_t at, struct slice user)
{
    size_t times = 0;
    for (size_t i = 0; i < harness->count; i++)
        times += slice_equal(harness->routes[i].gateway_id, harness_gateway(at)) &&
                 slice_equal(harness->routes[i].user_id, user);
    assert_true(times <= 1);
    return times == 1;
}

static void on_history_read(void *arg, enum state_status status,
                            const struct state_history *history, size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, count);
    for (size_t i = 0; i < count; i++) {
        harness->history[i] = history[i];
        /* Copy the terminator too, unlike for the other texts. */
        harness->history[i].cause =
            copy_text(harness, (struct slice){history[i].cause, strlen(history[i].cause) + 1}).data;
    }
}

static void on_forgotten(void *arg, enum state_status status)
{
    note_answer(arg, status, 0);
}

void harness_forget(struct harness *harness, size_t port, struct slice user)
{
    begin_operation(harness);
    state_forget(harness->ports[port], user, on_forgotten, harness);
    await_answer(harness);
    for (size_t i = 0; i < HARNESS_USERS_MAX; i++) /* the store need not know its version */
        if (slice_equal((struct slice){harness->users[i].id, harness->users[i].id_len}, user))
            harness->users[i].id_len = 0;
}

size_t harness_history(struct harness *harness, size_t port, struct slice user)
{
    begin_operation(harness);
    state_history(harness->ports[port], user, on_history_read, harness);
    await_answer(harness);
    return harness->count;
}

/* ---- reaping and gateways ---- */

static void on_reaped(void *arg, enum state_status status,
                      const struct state_transition *transitions, size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, count);
    for (size_t i = 0; i < count; i++) {
        harness->transitions[i] = transitions[i];
        harness->transitions[i].presence.user_id =
            copy_text(harness, transitions[i].presence.user_id);
    }
}

size_t harness_reap(struct harness *harness, size_t port, size_t max)
{
    begin_operation(harness);
    state_reap(harness->ports[port], max, on_reaped, harness);
    await_answer(harness);
    assert_true(harness->count <= max);
    for (size_t i = 0; i < harness->count; i++) {
        const struct state_transition *transition = &harness->transitions[i];
        check_version(harness, &transition->presence, transition->changed);
        assert_happened_during_operation(harness, transition->at_ms);
    }
    return harness->count;
}

static void on_gateways_listed(void *arg, enum state_status status,
                               const struct gateway_info *gateways, size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, count);
    for (size_t i = 0; i < count; i++) {
        harness->gateways[i] = gateways[i];
        harness->gateways[i].gateway_id = copy_text(harness, gateways[i].gateway_id);
    }
}

size_t harness_gateways(struct harness *harness, size_t port)
{
    begin_operation(harness);
    state_gateways(harness->ports[port], on_gateways_listed, harness);
    await_answer(harness);
    return harness->count;
}

static void on_online_listed(void *arg, enum state_status status, const struct state_online *page)
{
    struct harness *harness = arg;
    note_answer(harness, status, page->count);
    for (size_t i = 0; i < page->count; i++)
        harness->online[i] = copy_text(harness, page->users[i]);
    harness->next = copy_text(harness, page->next);
}

size_t harness_online(struct harness *harness, size_t port, struct slice after, size_t limit)
{
    char place[STATE_ONLINE_NEXT_MAX]; /* the last answer is dropped when an operation begins */
    assert_true(after.len <= sizeof(place));
    if (after.len)
        memcpy(place, after.data, after.len);
    begin_operation(harness);
    state_online(harness->ports[port], (struct slice){place, after.len}, limit, on_online_listed,
                 harness);
    await_answer(harness);
    assert_true(harness->count <= limit);
    return harness->count;
}

static void on_online_counted(void *arg, enum state_status status, size_t count)
{
    struct harness *harness = arg;
    note_answer(harness, status, 0);
    harness->count = count;
}

size_t harness_count_online(struct harness *harness, size_t port)
{
    begin_operation(harness);
    state_count_online(harness->ports[port], on_online_counted, harness);
    await_answer(harness);
    return harness->count;
}

void harness_put_gateway(struct harness *harness, size_t port, struct gateway_info info)
{
    state_put_gateway(harness->ports[port], &info);
    harness_gateways(harness, port); /* a put has no answer; wait for that of a later operation */
}
