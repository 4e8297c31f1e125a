#include "support/world.h"

/* Uses the composition root itself, so that tests run what is shipped. */
#include "app/gateway/gateway_internal.h"

#include "base/container.h"

#include "auth/keys/key_testing.h"
#include "ledger/breaker_ledger.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { SETTLE_TURNS_MAX = 10000, CLOSE_TIME_MAX_MS = 120000 };

/* Only world_advance() moves the time. */
static void keep_clock(struct clock *clock)
{
    (void)clock;
}

/* Most tests look at each change by itself; a test of the dwell sets it. */
static char no_dwell[] = "ROLLCALL_PRESENCE__MIN_DWELL_MS=0";
static char *const environment[] = {no_dwell, NULL};

static void load_config(struct world *world, const char *const *sets)
{
    struct config_error error;
    const struct config_flag flags[] = {{"--node-id", "gateway.node_id", "gw-test"},
                                        {"--jwt-keys", "auth.keys_file", "unused"}};
    struct config_inputs inputs = {
        .environment = environment, .assignments = sets, .flags = flags, .flag_count = 2};
    while (sets[inputs.assignment_count])
        inputs.assignment_count++;
    if (!config_load(&world->config, &inputs, &error))
        fail_msg("%s", error.text);
}

static struct key_set *make_keys(struct world *world)
{
    struct buffer jwks = BUFFER_INIT;
    struct auth_error error;
    EVP_PKEY *pkey = key_testing_ed25519();
    world->signer = key_testing_signer(pkey, NULL);
    EVP_PKEY_free(pkey);
    assert_true(jwt_signer_write_jwks(world->signer, &jwks));
    struct key_set *keys = key_testing_parse(buffer_slice(&jwks), &error);
    buffer_free(&jwks);
    assert_non_null(keys);
    return keys;
}

/* The breaker's clock has no argument, so it is that of the only world. */
static const struct clock *world_clock;

static int64_t world_clock_ms(void)
{
    return world_clock ? world_clock->now_ms : 0;
}

static struct ledger *make_ledger(struct world *world)
{
    const struct config_circuit_breaker *config = &world->config.gateway.circuit_breaker;
    const struct breaker_limits limits = {.failure_threshold = config->failure_threshold,
                                          .probe_count = config->half_open_probe_count,
                                          .failure_window_ms = config->failure_window_ms,
                                          .open_duration_ms = config->open_duration_ms};
    fake_ledger_init(&world->ledger);
    return breaker_ledger_make(&world->ledger.ledger, &limits, world_clock_ms);
}

static void make_parts(struct world *world)
{
    struct clock clock;
    clock_advance(&clock);
    world->parts = (struct gateway_parts){
        .config = &world->config,
        .ledger = make_ledger(world),
        .budget = memory_budget_make(1),
        .bus_group = mailbox_bus_group_make(1, 1),
        .exposition = calloc(1, sizeof(struct exposition)),
        .workers = 1,
        .connections_max = 1000,
        .started_at_ms = clock.wall_ms,
        .hash_seed = 1,
    };
    world->parts.embedded = embedded_make(&world->config, 1, clock.wall_ms);
    exposition_init(world->parts.exposition, clock.now_ms, clock.wall_ms);
}

void world_open(struct world *world, const char *const *sets)
{
    memset(world, 0, sizeof(*world));
    log_init(LOG_LEVEL_ERROR, false);
    load_config(world, sets);
    make_parts(world);
    struct gateway *gateway = gateway_make(&world->parts, 0);
    assert_non_null(gateway);
    world->gateway = gateway;
    world->loop = &gateway->loop;
    world_clock = &gateway->loop.clock;
    world->metrics = &gateway->metrics;
    world->sessions = &gateway->sessions;
    world->rest = &gateway->rest;
    world->presence = &gateway->presence;
    world->receiver = &gateway->receiver;
    world->loop->advance = keep_clock;
    random_init_seeded(&gateway->random, 1);
    verifier_use(&gateway->verifier, make_keys(world));
    gateway_start(gateway);
    world_settle(world);
}

void world_close(struct world *world)
{
    int64_t give_up_ms = world_now(world) + CLOSE_TIME_MAX_MS;
    world->ledger.failing = LEDGER_OK;
    world->ledger.holding = false;
    fake_ledger_release_all(&world->ledger);
    world_settle(world);
    world_drain(world);
    while (!world_drained(world)) {
        assert_true(world_now(world) < give_up_ms);
        world_advance(world, 1000);
    }
    gateway_stop(world->gateway);
    world_clock = NULL;
    ledger_close(&world->parts.ledger);
    while (gateway_finish(world->gateway))
        continue;
    gateway_free(&world->gateway);
    mailbox_bus_group_free(&world->parts.bus_group);
    memory_budget_free(&world->parts.budget);
    embedded_free(&world->parts.embedded);
    exposition_free(world->parts.exposition);
    free(world->parts.exposition);
    jwt_signer_free(&world->signer);
    config_free(&world->config);
}

/* ---- time ---- */

void world_turn(struct world *world)
{
    loop_turn(world->loop, 0);
}

static bool has_work(const struct world *world)
{
    struct pollfd events = {.fd = world->loop->epoll_fd, .events = POLLIN};
    return world->loop->tasks || wheel_next_ms(&world->loop->wheel) <= world_now(world) ||
           poll(&events, 1, 0) > 0;
}

void world_settle(struct world *world)
{
    int turns = 0;
    do {
        assert_true(turns++ < SETTLE_TURNS_MAX);
        world_turn(world);
    } while (has_work(world));
}

void world_advance(struct world *world, int64_t ms)
{
    struct clock *clock = &world->loop->clock;
    int64_t end_ms = clock->now_ms + ms;
    world_settle(world);
    while (clock->now_ms < end_ms) {
        int64_t next_ms = wheel_next_ms(&world->loop->wheel);
        if (next_ms <= clock->now_ms)
            next_ms = clock->now_ms + 1;
        if (next_ms > end_ms)
            next_ms = end_ms;
        clock->wall_ms += next_ms - clock->now_ms;
        clock->now_ms = next_ms;
        world_settle(world);
    }
}

int64_t world_now(const struct world *world)
{
    return world->loop->clock.now_ms;
}

void world_drain(struct world *world)
{
    gateway_start_drain(world->gateway);
    world_settle(world);
}

bool world_drained(const struct world *world)
{
    return gateway_is_drained(world->gateway);
}

/* ---- inspection ---- */

void world_token(struct world *world, const char *user, const char *scope, int64_t valid_ms,
                 char out[WORLD_TOKEN_BYTES_MAX])
{
    struct buffer token = BUFFER_INIT;
    int64_t wall_ms = world->loop->clock.wall_ms;
    struct jwt_sign_claims claims = {.user = slice_of(user),
                                     .scope = slice_of(scope),
                                     .issued_at_wall_ms = wall_ms,
                                     .expires_at_wall_ms = wall_ms + valid_ms};
    assert_true(jwt_sign(world->signer, &claims, &token));
    assert_true(token.len < WORLD_TOKEN_BYTES_MAX);
    memcpy(out, token.data, token.len);
    out[token.len] = '\0';
    buffer_free(&token);
}

struct session *world_session(struct world *world, const char *user)
{
    struct route *route = router_find(&world->gateway->router, slice_of(user));
    if (!route)
        return NULL;
    assert_ptr_equal(route->endpoints.next, route->endpoints.prev);
    return CONTAINER_OF(CONTAINER_OF(route->endpoints.next, struct endpoint, of_route),
                        struct session, endpoint);
}

static void on_presence_read(void *arg, enum state_status status, const struct presence *presences,
                             size_t count)
{
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    *(struct presence *)arg = presences[0];
}

struct presence world_presence(struct world *world, const char *user)
{
    struct presence presence = {0};
    struct slice id = slice_of(user);
    state_read(world->gateway->ports.store, &id, 1, on_presence_read, &presence);
    return presence;
}

struct lease_summary {
    size_t count;
    int64_t last_heartbeat_ms;
};

static void on_leases_read(void *arg, enum state_status status, const struct lease *leases,
                           size_t count)
{
    struct lease_summary *summary = arg;
    assert_int_equal(status, STATE_OK);
    summary->count = count;
    for (size_t i = 0; i < count; i++)
        if (leases[i].last_heartbeat_ms > summary->last_heartbeat_ms)
            summary->last_heartbeat_ms = leases[i].last_heartbeat_ms;
}

size_t world_leases(struct world *world, const char *user, int64_t *last_heartbeat_ms)
{
    struct lease_summary summary = {0};
    state_leases(world->gateway->ports.store, slice_of(user), on_leases_read, &summary);
    if (last_heartbeat_ms)
        *last_heartbeat_ms = summary.last_heartbeat_ms;
    return summary.count;
}

void world_push(struct world *world, const char *user, const char *data, uint64_t key)
{
    struct session *session = world_session(world, user);
    struct message message = {.type = MESSAGE_DELIVERY, .data = slice_of(data)};
    struct broadcast broadcast = {.message = &message};
    assert_non_null(session);
    session_deliver(&session->endpoint, &broadcast, key);
    broadcast_end(&broadcast);
}

int64_t world_metric(const struct world *world, enum metric metric)
{
    return world->metrics->values[metric];
}
