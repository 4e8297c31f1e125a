/* Leases, transitions and the events they cause, also while the state store is unavailable. */
#include "presence/presence_plane.h"

#include "support/client.h"
#include "text/time_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct world world;
static struct client alice, bob, phone;

static void open_with(const char *const *sets)
{
    world_open(&world, sets);
    client_connect(&alice, &world, "alice");
    client_send(&alice, "{\"type\":\"subscribe_presence\",\"user_ids\":[\"bob\"]}");
    client_expect(&alice, "presence_snapshot");
}

static void close_world(void)
{
    client_end_world(&world, CLIENTS(&alice));
}

static int64_t expect_change(const char *status)
{
    int64_t version = 0;
    client_expect_change(&alice, "bob", status);
    assert_int_equal(sscanf(strstr(alice.text, "\"version\":"), "\"version\":%ld", &version), 1);
    return version;
}

static void keep_alive(struct client *client)
{
    client_frame(client, CLIENT_PONG, "", 0);
    world_settle(&world);
}

static void first_and_last_device_publish_online_and_offline(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    int64_t version = expect_change("online");
    assert_true(client_has(&alice, "\"last_seen\":null"));
    client_connect(&phone, &world, "bob");
    client_hang_up(&bob);
    client_expect_nothing(&alice);
    client_hang_up(&phone);
    assert_true(expect_change("offline") > version);
    assert_false(client_has(&alice, "\"last_seen\":null"));
    client_expect_nothing(&alice);
    close_world();
}

static void the_ledger_keeps_last_seen(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    int64_t left_at_ms = world.loop->clock.wall_ms;
    client_hang_up(&bob);
    world_advance(&world, 2000);
    for (size_t i = 0; i < world.ledger.user_count; i++)
        if (strcmp(world.ledger.users[i].id, "bob") == 0)
            assert_int_equal(world.ledger.users[i].last_seen_ms, left_at_ms);
    assert_int_equal(world.ledger.submitted[LEDGER_LAST_SEEN_PUT], 1);
    close_world();
}

static void a_reconnect_within_the_grace_publishes_nothing(void **unused)
{
    (void)unused;
    open_with(WORLD_SETS("presence.offline_grace_seconds=3"));
    client_connect(&bob, &world, "bob");
    expect_change("online");
    client_hang_up(&bob);
    world_advance(&world, 2900);
    client_connect(&bob, &world, "bob");
    world_advance(&world, 4000);
    keep_alive(&alice);
    client_expect_nothing(&alice);
    client_hang_up(&bob);
    world_advance(&world, 2999);
    client_expect_nothing(&alice);
    world_advance(&world, 1 + world.config.presence.reap_interval_ms);
    expect_change("offline");
    close_world();
}

static void ignore(void *arg, bool registered)
{
    (void)arg;
    assert_true(registered);
}

/* A lease of a gateway that crashed: nobody renews it. */
static void an_expired_lease_is_reaped_and_shows_its_last_heartbeat(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    int64_t wall_ms = world.loop->clock.wall_ms;
    struct lease lease = {.conn_id = {{1}},
                          .user_id = SLICE("bob"),
                          .device_id = SLICE("tv"),
                          .gateway_id = SLICE("gw-crashed"),
                          .last_heartbeat_ms = wall_ms};
    presence_open(world.presence, &lease, ignore, NULL);
    expect_change("online");
    for (int second = 0; second < 14; second++) {
        world_advance(&world, 1000);
        keep_alive(&alice);
    }
    world_advance(&world, 999);
    client_expect_nothing(&alice);
    world_advance(&world, 1 + world.config.presence.reap_interval_ms);
    expect_change("offline");
    assert_int_equal(world_presence(&world, "bob").last_seen_ms, wall_ms);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_REAPED), 1);
    close_world();
}

static void any_number_of_renewals_is_sent_in_batches(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    const struct ulid conn_id = {{2}};
    for (int i = 0; i < 2 * PRESENCE_RENEWALS_MAX + 3; i++)
        presence_renew(world.presence, SLICE("nobody"), &conn_id, 0);
    assert_int_equal(world.presence->renewal_count, 3);
    presence_flush(world.presence);
    assert_int_equal(world.presence->renewal_count, 0);
    close_world();
}

static void an_invalid_bus_event_is_ignored(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    static const char *const payloads[] = {
        "",         "{}",
        "nonsense", "{\"type\":\"presence_changed\"}",
        "[1]",      "{\"type\":\"presence_changed\",\"user_id\":\"bob\",\"status\":\"rich\"}"};
    static char large[8192], long_id[1024];
    for (size_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++)
        presence_received(world.presence, SLICE("presence:bob"), slice_of(payloads[i]));
    presence_received(world.presence, SLICE("presence:bob"), (struct slice){large, sizeof(large)});
    snprintf(long_id, sizeof(long_id), "{\"type\":\"privacy_changed\",\"user_id\":\"%0512d\"}", 0);
    presence_received(world.presence, SLICE("presence:bob"), slice_of(long_id));
    client_expect_nothing(&alice);
    close_world();
}

/* ---- a store that does not answer ---- */

static struct state_store *real_store;

static void read_nothing(struct state_store *store, const struct slice *user_ids, size_t count,
                         state_presences_done done, void *arg)
{
    (void)store;
    (void)user_ids;
    (void)count;
    done(arg, STATE_UNAVAILABLE, NULL, 0);
}

static bool not_available(struct state_store *store)
{
    (void)store;
    return false;
}

/* ---- a store that executes operations but loses its answers ---- */

static const struct state_store_operations *real_operations;

static void ignore_transition(void *arg, enum state_status status,
                              const struct state_transition *transition)
{
    (void)arg;
    (void)transition;
    assert_int_equal(status, STATE_OK);
}

static void open_without_answer(struct state_store *store, const struct lease *lease,
                                state_transition_done done, void *arg)
{
    real_operations->open(store, lease, ignore_transition, NULL);
    done(arg, STATE_UNKNOWN, &(struct state_transition){.presence.user_id = lease->user_id});
}

static void close_without_answer(struct state_store *store, struct slice user_id,
                                 const struct ulid *conn_id, state_transition_done done, void *arg)
{
    real_operations->close(store, user_id, conn_id, ignore_transition, NULL);
    done(arg, STATE_UNKNOWN, &(struct state_transition){.presence.user_id = user_id});
}

static void lose_answers(struct state_store_operations *lossy)
{
    real_operations = world.presence->store->operations;
    *lossy = *real_operations;
    lossy->open = open_without_answer;
    lossy->close = close_without_answer;
    world.presence->store->operations = lossy;
}

static void restore_answers(void)
{
    world.presence->store->operations = real_operations;
}

static void a_close_without_an_answer_is_published_later(void **unused)
{
    (void)unused;
    struct state_store_operations lossy;
    open_with(WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    int64_t version = expect_change("online");
    lose_answers(&lossy);
    client_hang_up(&bob);
    client_expect_nothing(&alice);
    restore_answers();
    world_advance(&world, world.config.presence.reap_interval_ms);
    assert_true(expect_change("offline") > version);
    world_advance(&world, world.config.presence.reap_interval_ms);
    client_expect_nothing(&alice);
    close_world();
}

static void refuse_close(struct state_store *store, struct slice user_id,
                         const struct ulid *conn_id, state_transition_done done, void *arg)
{
    (void)store, (void)user_id, (void)conn_id;
    done(arg, STATE_UNAVAILABLE, &(struct state_transition){0});
}

static void a_close_that_the_store_refused_is_settled_with_its_time(void **unused)
{
    (void)unused;
    struct state_store_operations refusing;
    open_with(WORLD_DEFAULTS);
    client_connect(&bob, &world, "bob");
    int64_t version = expect_change("online");
    real_operations = world.presence->store->operations;
    refusing = *real_operations;
    refusing.close = refuse_close;
    refusing.available = not_available;
    world.presence->store->operations = &refusing;
    int64_t left_at_ms = world.presence->clock->wall_ms;
    client_hang_up(&bob);
    world_advance(&world, 2 * world.config.presence.reap_interval_ms);
    client_expect_nothing(&alice);
    restore_answers();
    world_advance(&world, world.config.presence.reap_interval_ms);
    assert_true(expect_change("offline") > version);
    char text[TIME_TEXT_LEN + 1] = {0};
    time_text_write(text, left_at_ms);
    assert_true(client_has(&alice, text));
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_CLAIMS_SETTLED), 1);
    assert_int_equal(world.presence->settlements.count, 0);
    close_world();
}

static void claims_beyond_the_bound_are_dropped(void **unused)
{
    (void)unused;
    struct ulid conn_id = {{1}};
    open_with(WORLD_DEFAULTS);
    for (int i = 0; i < SETTLE_QUEUE_MAX + 1; i++)
        settle_queue_add_departure(world.presence, SLICE("bob"), &conn_id, 1, false);
    assert_int_equal(world_metric(&world, METRIC_PRESENCE_CLAIMS_DROPPED), 1);
    world_advance(&world, world.config.presence.reap_interval_ms);
    assert_int_equal(world.presence->settlements.count, 0);
    close_world();
}

/* An event with a lower version than the viewers were told: the store lost the record. */
static void an_event_with_a_version_that_went_back_is_not_told(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    client_connect(&bob, &world, "bob");
    expect_change("online");
    struct slice older = SLICE("{\"type\":\"presence_changed\",\"user_id\":\"bob\",\"status\":"
                               "\"offline\",\"version\":5}");
    presence_received(world.presence, SLICE("presence:bob"), older);
    client_expect_nothing(&alice);
    assert_int_equal(world.presence->settlements.count, 1);
    presence_received(world.presence, SLICE("presence:bob"), older);
    assert_int_equal(world.presence->settlements.count, 1);
    world_advance(&world, world.config.presence.reap_interval_ms);
    assert_int_equal(world.presence->settlements.count, 0);
    client_hang_up(&bob);
    close_world();
}

static int64_t restored_version;

static void open_restored(struct state_store *store, const struct lease *lease,
                          state_transition_done done, void *arg)
{
    (void)store;
    done(arg, STATE_OK,
         &(struct state_transition){.presence = {.user_id = lease->user_id,
                                                 .status = PRESENCE_ONLINE,
                                                 .last_seen_ms = TIME_NONE,
                                                 .version = restored_version}});
}

static void on_restored(void *arg, bool opened)
{
    *(bool *)arg = opened;
}

/* Whoever asked while the record was lost was told offline. Found by the simulator: redis_evicts, seed 1. */
static void a_record_that_is_restored_without_a_transition_is_published(void **unused)
{
    (void)unused;
    char offline[128];
    struct presence told;
    bool opened = false;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    client_connect(&bob, &world, "bob");
    expect_change("online");
    assert_true(last_known_find(world.presence->last_known, SLICE("bob"), &told));
    int len = snprintf(offline, sizeof(offline),
                       "{\"type\":\"presence_changed\",\"user_id\":\"bob\",\"status\":"
                       "\"offline\",\"version\":%lld}",
                       (long long)told.version + 1);
    presence_received(world.presence, SLICE("presence:bob"), (struct slice){offline, (size_t)len});
    expect_change("offline");
    restored_version = told.version + 2;
    real_operations = world.presence->store->operations;
    struct state_store_operations restoring = *real_operations;
    restoring.open = open_restored;
    world.presence->store->operations = &restoring;
    presence_open(world.presence, &(struct lease){.user_id = SLICE("bob")}, on_restored, &opened);
    world.presence->store->operations = real_operations;
    world_settle(&world);
    assert_true(opened);
    expect_change("online");
    client_hang_up(&bob);
    close_world();
}

static int64_t claimed_version;

static void settle_and_keep_version(struct state_store *store, const struct state_claim *claim,
                                    state_transition_done done, void *arg)
{
    (void)store;
    claimed_version = claim->version_min;
    done(arg, STATE_OK,
         &(struct state_transition){.presence = {.user_id = claim->user_id, .unrecorded = true}});
}

/* The store's clock went back, and whoever made the version knew less than was told. Found by the simulator: clock_step,
 * seed 10. */
static void a_version_that_was_told_of_another_state_is_settled_above_it(void **unused)
{
    (void)unused;
    struct presence told;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    client_connect(&bob, &world, "bob");
    expect_change("online");
    real_operations = world.presence->store->operations;
    struct state_store_operations settling = *real_operations;
    settling.settle = settle_and_keep_version;
    world.presence->store->operations = &settling;
    assert_true(last_known_find(world.presence->last_known, SLICE("bob"), &told));
    struct presence stored = told;
    assert_false(settle_queue_check(world.presence, &stored));
    told.status = PRESENCE_OFFLINE; /* as this gateway told it */
    last_known_note(world.presence->last_known, &told);
    assert_true(settle_queue_check(world.presence, &stored));
    world_advance(&world, world.config.presence.reap_interval_ms);
    assert_int_equal(claimed_version, told.version + 1);
    world.presence->store->operations = real_operations;
    client_hang_up(&bob);
    close_world();
}

static bool claimed_finally;

static void settle_when_final(struct state_store *store, const struct state_claim *claim,
                              state_transition_done done, void *arg)
{
    (void)store;
    claimed_finally = claim->is_final;
    done(arg, STATE_OK,
         &(struct state_transition){.presence = {.user_id = claim->user_id, .unrecorded = true},
                                    .undecided = !claim->is_final});
}

/* Its record may have expired because the store's clock was set; the user's gateway finds that within a window. */
static void a_user_whose_record_is_missing_is_not_given_up_for_a_window(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    client_connect(&bob, &world, "bob");
    expect_change("online");
    real_operations = world.presence->store->operations;
    struct state_store_operations settling = *real_operations;
    settling.settle = settle_when_final;
    world.presence->store->operations = &settling;
    claimed_finally = false;
    struct presence missing = {.user_id = SLICE("bob"), .unrecorded = true};
    missing.last_seen_ms = TIME_NONE;
    int64_t from_ms = world.presence->clock->now_ms;
    int64_t window_ms = world.config.presence.expiry_window_ms;
    assert_true(settle_queue_check(world.presence, &missing));
    while (world.presence->clock->now_ms - from_ms < 2 * window_ms && !claimed_finally) {
        keep_alive(&bob);
        keep_alive(&alice);
        world_advance(&world, world.config.presence.reap_interval_ms);
    }
    assert_true(claimed_finally);
    assert_true(world.presence->clock->now_ms - from_ms >= window_ms);
    assert_int_equal(world.presence->settlements.count, 0);
    restore_answers();
    client_hang_up(&bob);
    close_world();
}

/* The client connects again, and for the store its user is connected already. */
static void an_open_without_an_answer_is_published_later(void **unused)
{
    (void)unused;
    struct state_store_operations lossy;
    char token[WORLD_TOKEN_BYTES_MAX];
    open_with(WORLD_DEFAULTS);
    lose_answers(&lossy);
    client_dial(&phone, &world, 0);
    world_token(&world, "bob", "", 60000, token);
    client_upgrade(&phone, token);
    assert_int_equal(client_response(&phone), 503);
    restore_answers();
    client_hang_up(&phone);
    client_connect(&bob, &world, "bob");
    client_expect_nothing(&alice);
    world_advance(&world, world.config.presence.reap_interval_ms);
    expect_change("online");
    client_hang_up(&bob);
    close_world();
}

/* Queries bob as alice and checks the result. */
static void expect_answer(const char *status, bool stale)
{
    client_send(&alice, "{\"type\":\"query_presence\",\"user_ids\":[\"bob\"]}");
    client_expect_with(&alice, "presence_snapshot", "\"status\":\"%s\"", status);
    assert_int_equal(client_has(&alice, "\"stale\":true"), stale);
    assert_int_equal(client_has(&alice, "stale"), stale);
}

static void the_last_known_presence_is_shown_as_stale(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    client_connect(&bob, &world, "bob");
    client_expect(&alice, "presence_changed");
    expect_answer("online", false);
    struct state_store_operations operations = *world.presence->store->operations;
    operations.read = read_nothing;
    real_store = world.presence->store;
    struct state_store broken = {&operations};
    world.presence->store = &broken;
    expect_answer("online", true);
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    expect_answer("unknown", true);
    world.presence->store = real_store;
    client_hang_up(&bob);
    close_world();
}

/* The store came back without its data: `stale` must not reveal that bob had a record before. */
static void a_hidden_user_looks_the_same_known_or_not(void **unused)
{
    (void)unused;
    open_with(WORLD_DEFAULTS);
    world.presence->last_known = last_known_make(1);
    last_known_note(world.presence->last_known, &(struct presence){.user_id = SLICE("bob"),
                                                                   .status = PRESENCE_ONLINE,
                                                                   .last_seen_ms = TIME_NONE,
                                                                   .version = INT64_MAX});
    resync_gap(world.presence, SLICE_NONE);
    expect_answer("online", true);
    fake_ledger_show(&world.ledger, "bob", LEDGER_VISIBLE_NOBODY, LEDGER_VISIBLE_NOBODY);
    expect_answer("unknown", false);
    close_world();
}

static void without_the_store_presence_is_stale_and_sessions_are_refused(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    open_with(WORLD_DEFAULTS);
    struct state_store_operations operations = *world.presence->store->operations;
    operations.read = read_nothing;
    operations.available = not_available;
    real_store = world.presence->store;
    struct state_store broken = {&operations};
    world.presence->store = &broken;
    expect_answer("unknown", true);
    client_dial(&bob, &world, 0);
    world_token(&world, "bob", "", 60000, token);
    client_upgrade(&bob, token);
    assert_int_equal(client_response(&bob), 503);
    assert_true(client_has(&bob, "Retry-After:"));
    world.presence->store = real_store;
    client_hang_up(&bob);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_and_last_device_publish_online_and_offline),
        cmocka_unit_test(the_ledger_keeps_last_seen),
        cmocka_unit_test(a_reconnect_within_the_grace_publishes_nothing),
        cmocka_unit_test(an_expired_lease_is_reaped_and_shows_its_last_heartbeat),
        cmocka_unit_test(any_number_of_renewals_is_sent_in_batches),
        cmocka_unit_test(an_invalid_bus_event_is_ignored),
        cmocka_unit_test(a_close_without_an_answer_is_published_later),
        cmocka_unit_test(a_close_that_the_store_refused_is_settled_with_its_time),
        cmocka_unit_test(claims_beyond_the_bound_are_dropped),
        cmocka_unit_test(an_event_with_a_version_that_went_back_is_not_told),
        cmocka_unit_test(a_version_that_was_told_of_another_state_is_settled_above_it),
        cmocka_unit_test(a_record_that_is_restored_without_a_transition_is_published),
        cmocka_unit_test(a_user_whose_record_is_missing_is_not_given_up_for_a_window),
        cmocka_unit_test(an_open_without_an_answer_is_published_later),
        cmocka_unit_test(the_last_known_presence_is_shown_as_stale),
        cmocka_unit_test(a_hidden_user_looks_the_same_known_or_not),
        cmocka_unit_test(without_the_store_presence_is_stale_and_sessions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
