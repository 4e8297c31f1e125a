/* Leases when Redis or a gateway fails, on a single server and on a cluster. */
#include "store/redis/redis_keys.h"
#include "support/state_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct state_pair the_pair;

/* ---- operations ---- */

struct renewal_answer {
    struct state_pair *pair;
    bool lost;
};

static void on_renewal(void *arg, enum state_status status, const struct lease_renewal *renewals,
                       size_t count)
{
    struct renewal_answer *answer = arg;
    assert_int_equal(count, 1);
    answer->pair->waiting--;
    answer->pair->status = status;
    answer->lost = renewals[0].lost;
    assert_int_equal(renewals[0].failed, status != STATE_OK);
}

static bool renew_is_lost(struct state_pair *pair, struct state_store *store, struct slice user,
                          unsigned number)
{
    struct lease_renewal renewal = {.conn_id = state_pair_connection(number), .user_id = user};
    struct renewal_answer answer = {.pair = pair};
    pair->waiting = 1;
    state_renew(store, &renewal, 1, on_renewal, &answer);
    state_pair_await(pair);
    return answer.lost;
}

struct presence_answer {
    struct state_pair *pair;
    enum presence_status status;
};

static void on_presence(void *arg, enum state_status status, const struct presence *presences,
                        size_t count)
{
    struct presence_answer *answer = arg;
    answer->pair->waiting--;
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    answer->status = presences[0].status;
}

static enum presence_status status_of(struct state_pair *pair, struct slice user)
{
    struct presence_answer answer = {.pair = pair};
    pair->waiting = 1;
    state_read(pair->second, &user, 1, on_presence, &answer);
    state_pair_await(pair);
    return answer.status;
}

struct reap_answer {
    struct state_pair *pair;
    size_t count;
    unsigned *offline; /* NULL, or for each number how often "user-<number>" went offline */
};

static void on_reaped(void *arg, enum state_status status,
                      const struct state_transition *transitions, size_t count)
{
    struct reap_answer *answer = arg;
    (void)status;
    answer->pair->waiting--;
    answer->count = count;
    for (size_t i = 0; i < count; i++)
        if (transitions[i].changed && answer->offline) {
            char text[16] = {0};
            memcpy(text, transitions[i].presence.user_id.data, transitions[i].presence.user_id.len);
            answer->offline[strtoul(text + 5, NULL, 10)]++;
        }
}

static size_t reap(struct state_pair *pair, struct state_store *store)
{
    struct reap_answer answer = {.pair = pair};
    pair->waiting = 1;
    state_reap(store, 100, on_reaped, &answer);
    state_pair_await(pair);
    return answer.count;
}

/* ---- tests ---- */

static void concurrent_reapers_report_each_end_once(void **state)
{
    enum { USERS = 150, TURNS = 12 };
    struct state_pair *pair = *state;
    unsigned offline[USERS] = {0};
    struct reap_answer answer = {.pair = pair, .offline = offline};
    for (unsigned i = 0; i < USERS; i++) {
        char text[16];
        struct slice user = {text, (size_t)snprintf(text, sizeof(text), "user-%u", i)};
        assert_int_equal(state_pair_open(pair, pair->first, user, i), 1);
    }
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 100);
    for (int i = 0; i < TURNS; i++) {
        pair->waiting = 2;
        state_reap(pair->first, 20, on_reaped, &answer);
        state_reap(pair->second, 20, on_reaped, &answer);
        state_pair_await(pair);
    }
    for (unsigned i = 0; i < USERS; i++)
        assert_int_equal(offline[i], 1);
}

static void lost_data_is_noticed_and_restored_without_transitions(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_claim(pair, pair->first), REDIS_CLAIM_GRANTED);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_false(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    redis_fleet_empty(&pair->fleet);
    state_pair_pass(pair, 150);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    state_pair_pass(pair, 150);
    assert_int_equal(pair->forgotten, 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("bob"), 2),
                     1); /* a new user is a transition */
}

static void user_who_was_reaped_makes_a_transition_on_return(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 200);
    assert_int_equal(reap(pair, pair->second), 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 1);
}

/* What a clock that is set forward does to a lease that is renewed on time. */
static void make_lease_overdue(struct state_pair *pair, unsigned number)
{
    char conn[ULID_TEXT_LEN + 1] = {0}, member[64], entry[64], record[64];
    struct redis_server *server = &pair->fleet.servers[0];
    struct ulid id = state_pair_connection(number);
    ulid_write(conn, &id);
    snprintf(member, sizeof(member), "%s 0 gw-2", conn);
    snprintf(entry, sizeof(entry), "%s:alice", conn);
    snprintf(record, sizeof(record), "connection:%s", conn);
    redis_server_expect(server, "0", "ZADD", "user_leases:alice", "1000", member, NULL);
    redis_server_expect(server, "0", "ZADD", "presence:v_heartbeat", "1000", entry, NULL);
    redis_server_expect(server, "1", "DEL", record, NULL);
}

static void close_leaves_the_overdue_leases_of_others_to_a_reaper(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("alice"), 2), 0);
    make_lease_overdue(pair, 2);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 0);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
    assert_true(renew_is_lost(pair, pair->second, SLICE("alice"), 2));
    assert_int_equal(state_pair_open_again(pair, pair->second, SLICE("alice"), 2), 0);
    assert_int_equal(state_pair_close(pair, pair->second, SLICE("alice"), 2), 1);
}

/* Another lease that is opened meanwhile does not count it twice. */
static void overdue_lease_that_returns_is_counted_once(void **state)
{
    struct state_pair *pair = *state;
    struct redis_server *server = &pair->fleet.servers[0];
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("alice"), 2), 0);
    make_lease_overdue(pair, 2);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 3), 0);
    assert_int_equal(state_pair_open_again(pair, pair->second, SLICE("alice"), 2), 0);
    redis_server_expect(server, "1", "HGET", "user_lease_counts:alice", "on:gw-2", NULL);
    redis_server_expect(server, "2", "HGET", "user_lease_counts:alice", "on:gw-1", NULL);
}

static void foreign_values_are_removed_and_counted(void **state)
{
    struct state_pair *pair = *state;
    static const char *const names[] = {
        "user_connections:", "user_servers:", "user_presence:", "last_seen:", "presence_history:"};
    int64_t before = pair->fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED];
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char text[REDIS_KEY_BYTES_MAX];
        struct slice key = redis_key_user(&(struct redis_keys){pair->fleet.cluster}, text, names[i],
                                          SLICE("alice"), "");
        redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
        redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("PFADD"), key, SLICE("x")));
        if (i == 3) /* a HyperLogLog is a string: here it is garbage of the right type */
            assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
        state_pair_open_again(pair, pair->first, SLICE("alice"), 1);
        assert_int_equal(pair->status, STATE_OK);
        assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
        assert_false(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    }
    /* The history is met by the next transition. */
    assert_int_equal(pair->fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED] - before, 3);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(pair->fleet.worker.metrics.values[METRIC_ROUTING_VALUES_MENDED] - before, 4);
}

/* Redis pauses for longer than a lease: all leases have expired by then, and no transition is made. */
static void pause_of_redis_turns_nobody_offline(void **state)
{
    struct state_pair *pair = *state;
    state_pair_pass(pair,
                    STATE_PAIR_WINDOW_MS + 50); /* reaping is no longer deferred after the start */
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_pause(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_unavailable);
    renew_is_lost(pair, pair->first, SLICE("alice"), 1);
    assert_int_equal(pair->status, STATE_UNKNOWN);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_available);
    assert_int_equal(reap(pair, pair->second), 0);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS / 2);
    assert_int_equal(reap(pair, pair->second), 0);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS * 3 / 4);
    reap(pair, pair->second);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
}

/* A reap waits in the socket of a paused Redis until the leases have expired. */
static void reap_that_redis_runs_late_ends_no_lease(void **state)
{
    struct state_pair *pair = *state;
    struct reap_answer answer = {.pair = pair};
    state_pair_pass(pair,
                    STATE_PAIR_WINDOW_MS + 50); /* reaping is no longer deferred after the start */
    assert_int_equal(reap(pair, pair->second), 0);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_pause(&pair->fleet.servers[0]);
    pair->waiting = 1;
    state_reap(pair->second, 100, on_reaped, &answer);
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS + 200);
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await(pair);
    assert_int_equal(answer.count, 0);
    state_pair_await_that(pair, state_pair_is_available);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_ONLINE);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
}

struct close_answer {
    struct state_pair *pair;
    bool names_alice;
};

static void on_closed(void *arg, enum state_status status,
                      const struct state_transition *transition)
{
    struct close_answer *answer = arg;
    assert_int_equal(status, STATE_UNKNOWN);
    answer->names_alice = slice_is(transition->presence.user_id, "alice");
    answer->pair->waiting--;
}

static bool close_is_unknown(struct state_pair *pair)
{
    struct close_answer answer = {.pair = pair};
    const struct ulid conn_id = state_pair_connection(1);
    pair->waiting = 1;
    state_close(pair->first, SLICE("alice"), &conn_id, on_closed, &answer);
    state_pair_await(pair);
    return answer.names_alice;
}

static void close_without_an_answer_is_unknown_and_names_its_user(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_pause(&pair->fleet.servers[0]);
    assert_true(close_is_unknown(pair));
    redis_server_resume(&pair->fleet.servers[0]);
    state_pair_await_that(pair, state_pair_is_available);
}

static void on_renewal_count(void *arg, enum state_status status,
                             const struct lease_renewal *renewals, size_t count)
{
    (void)status, (void)renewals, (void)count;
    ((struct state_pair *)arg)->waiting--;
}

static void on_transition_count(void *arg, enum state_status status,
                                const struct state_transition *transition)
{
    (void)status, (void)transition;
    ((struct state_pair *)arg)->waiting--;
}

/* Renews the leases of many users at once, and closes them before a paused server has answered its part. */
static void renew_and_close(struct state_pair *pair, struct redis_server *paused)
{
    enum { USERS = 12 };
    char texts[USERS][16];
    struct lease_renewal renewals[USERS];
    for (unsigned i = 0; i < USERS; i++) {
        struct slice user = {texts[i], (size_t)snprintf(texts[i], sizeof(texts[i]), "user-%u", i)};
        assert_true(state_pair_open(pair, pair->first, user, i) >= 0);
        renewals[i] = (struct lease_renewal){.conn_id = state_pair_connection(i), .user_id = user};
    }
    redis_server_pause(paused);
    pair->waiting = 1 + USERS;
    state_renew(pair->first, renewals, USERS, on_renewal_count, pair);
    for (unsigned i = 0; i < USERS; i++)
        state_close(pair->first, renewals[i].user_id, &renewals[i].conn_id, on_transition_count,
                    pair);
    state_pair_pass(pair, 100);
    redis_server_resume(paused);
    state_pair_await(pair);
}

static const char *has_connection(struct state_pair *pair, const char *conn)
{
    struct slice key = SLICE("server_connections:gw-1");
    return redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("SISMEMBER"), key, slice_of(conn)));
}

static struct slice alice_key(const struct state_pair *pair, const char *name, char out[64])
{
    int len = snprintf(out, 64, pair->fleet.cluster ? "%s:{alice}" : "%s:alice", name);
    return (struct slice){out, (size_t)len};
}

/* Found by the simulator: redis_evicts, seed 2. */
static void lost_servers_of_a_user_are_restored_by_the_first_gateway_that_notices(void **state)
{
    struct state_pair *pair = *state;
    char text[64];
    struct slice key = alice_key(pair, "user_servers", text);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 2), 0);
    assert_int_equal(state_pair_open(pair, pair->second, SLICE("alice"), 3), 0);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(state_pair_open_again(pair, pair->first, SLICE("alice"), 1), 0);
    assert_string_equal(redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("SCARD"), key)), "2");
    assert_false(renew_is_lost(pair, pair->second, SLICE("alice"), 3));
}

/* Found by the simulator: redis_evicts, seed 11. */
static void lease_whose_list_is_lost_is_closed(void **state)
{
    struct state_pair *pair = *state;
    char text[64], conn[ULID_TEXT_LEN + 1] = {0};
    struct ulid id = state_pair_connection(1);
    struct slice key = alice_key(pair, "user_connections", text);
    ulid_write(conn, &id);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_fleet_settle(&pair->fleet, 2);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("DEL"), key));
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_OFFLINE);
    redis_fleet_settle(&pair->fleet, 2);
    assert_string_equal(has_connection(pair, conn), "0");
}

/* Renewals that come together find each connection that is missing, whichever it is. */
static void lost_part_of_the_set_of_connections_is_restored(void **state)
{
    struct state_pair *pair = *state;
    char conn[ULID_TEXT_LEN + 1] = {0};
    struct slice key = SLICE("server_connections:gw-1");
    struct lease_renewal renewals[] = {
        {.conn_id = state_pair_connection(1), .user_id = SLICE("alice")},
        {.conn_id = state_pair_connection(2), .user_id = SLICE("alice")}};
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 2), 0);
    redis_fleet_settle(&pair->fleet, 2);
    ulid_write(conn, &renewals[1].conn_id);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("SREM"), key, slice_of(conn)));
    pair->waiting = 1;
    state_renew(pair->first, renewals, 2, on_renewal_count, pair);
    state_pair_await(pair);
    redis_fleet_settle(&pair->fleet, 2);
    assert_string_equal(has_connection(pair, conn), "1");
}

static int set_idle(struct state_pair *pair, bool idle)
{
    struct ulid id = state_pair_connection(1);
    pair->waiting = 1;
    state_set_idle(pair->first, SLICE("alice"), &id, idle, on_transition_count, pair);
    state_pair_await(pair);
    return status_of(pair, SLICE("alice"));
}

/* A request that was written to a connection which was cut arrives after the next one. */
static void idle_that_comes_late_changes_nothing(void **state)
{
    struct state_pair *pair = *state;
    char text[REDIS_SERVER_REPLY_MAX], later[32], store[9] = "";
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(set_idle(pair, true), PRESENCE_AWAY);
    assert_int_equal(set_idle(pair, false), PRESENCE_ONLINE);
    struct slice key = redis_fleet_find(&pair->fleet, "connection:*", text);
    struct slice field = SLICE("idle_request");
    const char *last = redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("HGET"), key, field));
    assert_int_equal(sscanf(last, "%8[0-9a-f]:2", store), 1);
    snprintf(later, sizeof(later), "%s:9", store); /* as if a later one had run */
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("HSET"), key, field, slice_of(later)));
    assert_int_equal(set_idle(pair, true), PRESENCE_ONLINE);
    store[0] = store[0] == '0' ? '1' : '0'; /* numbers of another store say nothing */
    snprintf(later, sizeof(later), "%s:9", store);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("HSET"), key, field, slice_of(later)));
    assert_int_equal(set_idle(pair, true), PRESENCE_AWAY);
}

/* A slot that moves from one server to another, key by key. */
struct moving_slot {
    const struct redis_server *from, *to;
    char slot[8];
    char from_id[REDIS_SERVER_REPLY_MAX], to_id[REDIS_SERVER_REPLY_MAX];
};

static void set_slot(const struct redis_server *server, const struct moving_slot *moving,
                     const char *state, const char *id)
{
    redis_server_expect(server, "OK", "CLUSTER", "SETSLOT", moving->slot, state, id, NULL);
}

static void begin_moving(struct moving_slot *moving, struct state_pair *pair, const char *key)
{
    unsigned slot = redis_slot(slice_of(key)), owner = slot * REDIS_CLUSTER_MASTERS / REDIS_SLOTS;
    moving->from = &pair->fleet.servers[owner];
    moving->to = &pair->fleet.servers[(owner + 1) % REDIS_CLUSTER_MASTERS];
    snprintf(moving->slot, sizeof(moving->slot), "%u", slot % REDIS_SLOTS);
    redis_cluster_id(moving->from, moving->from_id);
    redis_cluster_id(moving->to, moving->to_id);
    set_slot(moving->to, moving, "IMPORTING", moving->from_id);
    set_slot(moving->from, moving, "MIGRATING", moving->to_id);
}

static void move_key(const struct moving_slot *moving, const char *key)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", moving->to->port);
    redis_server_expect(moving->from, "OK", "MIGRATE", "127.0.0.1", port, key, "0", "1000", NULL);
}

/* Moves the keys that are left, one by one. */
static void end_moving(const struct moving_slot *moving)
{
    char keys[REDIS_SERVER_REPLY_MAX];
    for (;;) {
        redis_server_ask(moving->from, keys, "CLUSTER", "GETKEYSINSLOT", moving->slot, "1", NULL);
        keys[strcspn(keys, " ")] = 0;
        if (!*keys)
            break;
        move_key(moving, keys);
    }
    set_slot(moving->to, moving, "NODE", moving->to_id);
    set_slot(moving->from, moving, "NODE", moving->to_id);
}

/* Returns the name of a user whose slot is the one of "{alice}". */
static struct slice find_neighbour(char out[32])
{
    char key[48];
    for (unsigned i = 0;; i++) {
        int len = snprintf(out, 32, "user-%u", i);
        snprintf(key, sizeof(key), "{%s}", out);
        if (redis_slot(slice_of(key)) == redis_slot(SLICE("{alice}")))
            return (struct slice){out, (size_t)len};
    }
}

static void on_presence_kept(void *arg, enum state_status status, const struct presence *presences,
                             size_t count)
{
    struct state_pair *pair = arg;
    pair->waiting--;
    assert_int_equal(status, STATE_OK);
    assert_int_equal(count, 1);
    pair->transition.presence.status = presences[0].status;
}

static void on_nobody_reaped(void *arg, enum state_status status,
                             const struct state_transition *transitions, size_t count)
{
    (void)status, (void)transitions;
    ((struct state_pair *)arg)->waiting--;
    assert_int_equal(count, 0);
}

static void on_opened_while_moving(void *arg, enum state_status status,
                                   const struct state_transition *transition)
{
    ((struct state_pair *)arg)->waiting--;
    assert_int_equal(status, STATE_OK);
    assert_true(transition->changed);
}

/* What is asked meanwhile waits: nobody is taken for offline, nobody is refused, and no key is on both servers. */
static void operations_wait_while_the_slot_moves(void **state)
{
    struct state_pair *pair = *state;
    struct moving_slot moving;
    char name[32];
    const struct slice alice = SLICE("alice");
    const struct lease lease = {.conn_id = state_pair_connection(7),
                                .user_id = find_neighbour(name),
                                .device_id = SLICE("phone"),
                                .gateway_id = SLICE("gw-1")};
    struct lease_renewal renewal = {.conn_id = state_pair_connection(1), .user_id = alice};
    assert_int_equal(state_pair_open(pair, pair->first, alice, 1), 1);
    begin_moving(&moving, pair, "{alice}");
    move_key(&moving, "user_presence:{alice}");
    move_key(&moving, "user_connections:{alice}");
    pair->waiting = 4;
    state_renew(pair->first, &renewal, 1, on_renewal_count, pair);
    state_reap(pair->second, 8, on_nobody_reaped, pair);
    state_read(pair->second, &alice, 1, on_presence_kept, pair);
    state_open(pair->first, &lease, on_opened_while_moving, pair);
    state_pair_pass(pair, 300);
    end_moving(&moving);
    state_pair_await(pair);
    assert_int_equal(pair->transition.presence.status, PRESENCE_ONLINE);
    assert_false(renew_is_lost(pair, pair->first, alice, 1));
    assert_int_equal(state_pair_close(pair, pair->first, alice, 1), 1);
}

static bool is_every_server_back(void *arg)
{
    const struct state_pair *pair = arg;
    return pair->returned >=
           REDIS_FLEET_CLIENTS * (pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1);
}

/* A server that serves again may have lost the end of a lease. Renewals would keep the set with the connection for ever. */
static void servers_that_return_make_the_set_of_connections_anew(void **state)
{
    struct state_pair *pair = *state;
    struct slice key = SLICE("server_connections:gw-1");
    char conn[ULID_TEXT_LEN + 1] = {0};
    struct ulid id = state_pair_connection(2);
    ulid_write(conn, &id);
    state_put_gateway(pair->first, &STATE_PAIR_INFO);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("bob"), 2), 1);
    redis_fleet_settle(&pair->fleet, 2);
    redis_fleet_ask(&pair->fleet, key, REDIS_ARGS(SLICE("SADD"), key, SLICE("gone")));
    assert_string_equal(has_connection(pair, "gone"), "1");
    for (size_t i = 0; i < (pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1); i++) {
        char reply[REDIS_SERVER_REPLY_MAX];
        redis_server_ask(&pair->fleet.servers[i], reply, "CLIENT", "KILL", "TYPE", "normal", NULL);
    }
    state_pair_await_that(pair, is_every_server_back);
    assert_string_equal(has_connection(pair, "gone"), "0");
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("carol"), 3), 1);
    assert_false(renew_is_lost(pair, pair->first, SLICE("bob"), 2));
    redis_fleet_settle(&pair->fleet, 2);
    assert_string_equal(has_connection(pair, conn), "1");
}

static size_t count_masters_without_connections(struct state_pair *pair)
{
    state_pair_pass(pair, 100); /* updates that follow the answers */
    return redis_fleet_count(&pair->fleet, "0", "SCARD", "server_connections:gw-1", NULL, NULL);
}

static void connection_closed_during_its_renewal_is_removed(void **state)
{
    struct state_pair *pair = *state;
    for (size_t i = 0; i < REDIS_CLUSTER_MASTERS; i++) {
        renew_and_close(pair, &pair->fleet.servers[i]);
        assert_int_equal(count_masters_without_connections(pair), 1);
    }
}

static void connection_closed_before_its_renewal_is_removed(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 1);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
    assert_int_equal(count_masters_without_connections(pair), 1);
}

/* Leaves the state of an open that has reached the index and not yet the user's slot; it may still arrive there on a
 * connection that was lost. */
static struct slice index_lease_only(struct state_pair *pair, char index[REDIS_SERVER_REPLY_MAX])
{
    static const struct slice keys = {"user_connections:{alice}", 24};
    char record[REDIS_SERVER_REPLY_MAX];
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    struct slice lease = redis_fleet_find(&pair->fleet, "connection:{alice}:*", record);
    redis_fleet_ask(&pair->fleet, lease, REDIS_ARGS(SLICE("DEL"), lease));
    redis_fleet_ask(&pair->fleet, keys, REDIS_ARGS(SLICE("DEL"), keys));
    return redis_fleet_find(&pair->fleet, "presence:v_heartbeat*", index);
}

static void lease_whose_close_overtakes_its_open_is_reaped(void **state)
{
    struct state_pair *pair = *state;
    char text[REDIS_SERVER_REPLY_MAX];
    struct slice index = index_lease_only(pair, text);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 1), 0);
    state_pair_pass(pair, 100); /* updates that follow the answer */
    assert_string_equal(redis_fleet_ask(&pair->fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)),
                        "1");
    state_pair_pass(pair, STATE_PAIR_WINDOW_MS);
    assert_int_equal(reap(pair, pair->second), 1);
    assert_string_equal(redis_fleet_ask(&pair->fleet, index, REDIS_ARGS(SLICE("ZCARD"), index)),
                        "0");
}

static void flush_scripts(struct state_pair *pair)
{
    for (size_t i = 0; i < (pair->fleet.cluster ? REDIS_CLUSTER_MASTERS : 1); i++)
        redis_server_expect(&pair->fleet.servers[i], "OK", "SCRIPT", "FLUSH", NULL);
}

/* As after a failover: the server has only the scripts that were run since. It has the source of the close and not that
 * of the open. */
static void close_waits_for_an_open_whose_script_must_be_sent(void **state)
{
    struct state_pair *pair = *state;
    const struct lease lease = {.conn_id = state_pair_connection(1),
                                .user_id = SLICE("alice"),
                                .device_id = SLICE("phone"),
                                .gateway_id = SLICE("gw-1")};
    flush_scripts(pair);
    assert_int_equal(state_pair_close(pair, pair->first, SLICE("alice"), 2), 0);
    pair->waiting = 2;
    state_open(pair->first, &lease, on_transition_count, pair);
    state_close(pair->first, lease.user_id, &lease.conn_id, on_transition_count, pair);
    state_pair_await(pair);
    assert_int_equal(status_of(pair, SLICE("alice")), PRESENCE_OFFLINE);
    assert_true(renew_is_lost(pair, pair->first, SLICE("alice"), 1));
}

static void refused_write_is_unavailable(void **state)
{
    struct state_pair *pair = *state;
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("alice"), 1), 1);
    redis_server_expect(&pair->fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("bob"), 2), -1);
    assert_int_equal(pair->status, STATE_UNAVAILABLE);
    redis_server_expect(&pair->fleet.servers[0], "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    state_pair_await_that(pair, state_pair_is_available);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("bob"), 2), 1);
    redis_server_expect(&pair->fleet.servers[0], "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("carol"), 3), -1);
    assert_int_equal(pair->status, STATE_UNAVAILABLE);
    redis_server_expect(&pair->fleet.servers[0], "OK", "REPLICAOF", "NO", "ONE", NULL);
    state_pair_await_that(pair, state_pair_is_available);
    redis_server_expect(&pair->fleet.servers[0], "OK", "SCRIPT", "FLUSH", NULL);
    assert_int_equal(state_pair_open(pair, pair->first, SLICE("carol"), 3), 1);
}

#define TEST(name) STATE_PAIR_TEST(name, &the_pair)

static int run(bool cluster)
{
    const struct CMUnitTest tests[] = {
        TEST(concurrent_reapers_report_each_end_once),
        TEST(lost_data_is_noticed_and_restored_without_transitions),
        TEST(user_who_was_reaped_makes_a_transition_on_return),
        TEST(foreign_values_are_removed_and_counted),
        TEST(close_waits_for_an_open_whose_script_must_be_sent),
        TEST(servers_that_return_make_the_set_of_connections_anew),
        TEST(lost_servers_of_a_user_are_restored_by_the_first_gateway_that_notices),
        TEST(lease_whose_list_is_lost_is_closed),
        TEST(idle_that_comes_late_changes_nothing),
        TEST(lost_part_of_the_set_of_connections_is_restored),
    };
    const struct CMUnitTest cluster_tests[] = {
        TEST(connection_closed_during_its_renewal_is_removed),
        TEST(connection_closed_before_its_renewal_is_removed),
        TEST(lease_whose_close_overtakes_its_open_is_reaped),
        TEST(operations_wait_while_the_slot_moves),
    };
    const struct CMUnitTest single_server_tests[] = {
        TEST(pause_of_redis_turns_nobody_offline),
        TEST(reap_that_redis_runs_late_ends_no_lease),
        TEST(refused_write_is_unavailable),
        TEST(close_leaves_the_overdue_leases_of_others_to_a_reaper),
        TEST(overdue_lease_that_returns_is_counted_once),
        TEST(close_without_an_answer_is_unknown_and_names_its_user),
    };
    redis_fleet_open(&the_pair.fleet, cluster);
    int failed =
        cmocka_run_group_tests_name(cluster ? "on a cluster" : "on a server", tests, NULL, NULL);
    failed += cluster ? cmocka_run_group_tests(cluster_tests, NULL, NULL)
                      : cmocka_run_group_tests(single_server_tests, NULL, NULL);
    redis_fleet_close(&the_pair.fleet);
    return failed;
}

int main(void)
{
    return run(false) + run(true);
}
