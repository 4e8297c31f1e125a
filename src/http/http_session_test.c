/* One HTTP connection on virtual time: requests in turn, slow and vanishing peers, bounds, draining. */
#include "http/http_session.h"

#include "base/container.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

enum { HEADER_TIMEOUT_MS = 10000, IDLE_TIMEOUT_MS = 60000, CLOSE_TIMEOUT_MS = 5000 };

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
#define HALF_A_BODY "PATCH /v1/me HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n{"

static struct world world;
static struct client alice, bob;

static int open_world(void **unused)
{
    (void)unused;
    world_open(&world, WORLD_SETS("gateway.http.max_body_bytes=1000"));
    client_dial(&alice, &world, 0);
    return 0;
}

static int close_world(void **unused)
{
    (void)unused;
    client_end_world(&world, CLIENTS(&alice));
    return 0;
}

static void ask(const char *method, const char *path, const char *token)
{
    client_print(&alice, "%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n\r\n", method,
                 path, token);
}

/* ---- time ---- */

static void one_who_says_nothing_is_closed_in_time(void **unused)
{
    (void)unused;
    world_advance(&world, HEADER_TIMEOUT_MS - 1);
    assert_int_equal(world.rest->listener.session_count, 1);
    world_advance(&world, 1);
    client_expect_end(&alice);
}

static void a_slow_head_is_answered_408_and_closed(void **unused)
{
    (void)unused;
    world_advance(&world, 5000);
    client_print(&alice, "GET /healthz HT");
    for (int i = 0; i < 9; i++) { /* a byte now and then does not prolong it */
        world_advance(&world, 1000);
        client_print(&alice, i == 0 ? "TP/1.1\r\nX" : "x");
    }
    world_advance(&world, 999);
    assert_int_equal(client_response(&alice), 0);
    world_advance(&world, 1);
    assert_int_equal(client_response(&alice), 408);
    assert_true(client_has(&alice, "Connection: close"));
    client_expect_end(&alice);
}

static void a_slow_body_is_answered_408_and_closed(void **unused)
{
    (void)unused;
    client_print(&alice, HALF_A_BODY);
    world_advance(&world, HEADER_TIMEOUT_MS - 1);
    assert_int_equal(client_response(&alice), 0);
    world_advance(&world, 1);
    assert_int_equal(client_response(&alice), 408);
    client_expect_end(&alice);
}

static void an_idle_connection_is_kept_so_long_and_no_longer(void **unused)
{
    (void)unused;
    client_print(&alice, HEALTH);
    assert_int_equal(client_response(&alice), 200);
    world_advance(&world, IDLE_TIMEOUT_MS - 1);
    client_print(&alice, HEALTH);
    assert_int_equal(client_response(&alice), 200);
    world_advance(&world, IDLE_TIMEOUT_MS);
    client_expect_end(&alice);
}

/* Its first bytes came with the request before: its time runs from that one's answer. */
static void half_a_request_behind_another_has_a_header_s_time_not_an_idle_one_s(void **unused)
{
    (void)unused;
    client_print(&alice, HEALTH "GET /healthz HT");
    assert_int_equal(client_response(&alice), 200);
    world_advance(&world, HEADER_TIMEOUT_MS);
    assert_int_equal(client_response(&alice), 408);
    client_expect_end(&alice);
}

static void a_peer_that_stays_after_its_last_answer_is_cut_off(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.0\r\n\r\n");
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_next(&alice), CLIENT_END); /* our half */
    world_advance(&world, CLOSE_TIMEOUT_MS - 1);
    assert_int_equal(world.rest->listener.session_count, 1);
    world_advance(&world, 1);
    assert_int_equal(world.rest->listener.session_count, 0);
}

/* ---- requests in turn ---- */

static void pipelined_requests_are_answered_in_order_one_at_a_time(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    ask("GET", "/v1/me", token);
    client_print(&alice, HEALTH HEALTH);
    ask("GET", "/no/such/path", token);
    assert_int_equal(client_response(&alice), 0);
    assert_int_equal(world_metric(&world, METRIC_HTTP_REQUESTS), 0); /* nobody jumps the queue */
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
    assert_true(client_has(&alice, "\"user_id\":\"alice\""));
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_response(&alice), 404);
}

static void a_burst_of_requests_is_answered_whole(void **unused)
{
    (void)unused;
    enum { REQUESTS = 1000 };
    int answered = 0;
    static char burst[REQUESTS * (sizeof(HEALTH) - 1)];
    for (int i = 0; i < REQUESTS; i++)
        memcpy(burst + i * (sizeof(HEALTH) - 1), HEALTH, sizeof(HEALTH) - 1);
    for (int i = 0; i < 3; i++) /* more than a session buffers */
        client_write(&alice, burst, sizeof(burst));
    while (client_response(&alice) == 200)
        answered++;
    assert_int_equal(answered, 3 * REQUESTS);
}

static void answers_nobody_reads_do_not_pile_up(void **unused)
{
    (void)unused;
    client_dial(&bob, &world, 4096);
    for (int i = 0; i < 200; i++) {
        client_print(&bob, HEALTH);
        world_settle(&world);
    }
    for (struct list *at = world.rest->listener.sessions.next; at != &world.rest->listener.sessions;
         at = at->next) {
        const struct http_session *session = CONTAINER_OF(at, struct http_session, of_listener);
        assert_true(session->out.len < 2000);
    }
    client_hang_up(&bob);
}

static void a_peer_that_shuts_its_side_down_gets_its_answer(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    ask("GET", "/v1/me", token);
    shutdown(alice.fd, SHUT_WR);
    world_settle(&world);
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
    client_expect_end(&alice);
    assert_int_equal(world.rest->listener.session_count, 0);
}

static void a_peer_that_ends_after_its_last_request_is_not_waited_for(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    shutdown(alice.fd, SHUT_WR);
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(world.rest->listener.session_count, 0);
    client_expect_end(&alice);
}

static void a_body_is_asked_for_where_the_peer_waits_for_that(void **unused)
{
    (void)unused;
    client_print(&alice, "PATCH /v1/me HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\n");
    assert_int_equal(client_response(&alice), 100);
    client_print(&alice, "{}");
    assert_int_equal(client_response(&alice), 401);
}

static void a_body_beyond_the_bound_is_refused(void **unused)
{
    (void)unused;
    client_print(&alice, "PATCH /v1/me HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n");
    assert_int_equal(client_response(&alice), 413);
    client_expect_end(&alice);
}

static void a_head_that_is_none_is_refused_and_the_rest_not_taken_for_a_request(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.1\nHost: test\n\n" HEALTH);
    assert_int_equal(client_response(&alice), 400);
    client_expect_end(&alice);
    assert_int_equal(world_metric(&world, METRIC_PROTOCOL_ERRORS), 1);
}

static void a_path_under_another_method_says_which(void **unused)
{
    (void)unused;
    client_print(&alice, "DELETE /v1/me HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_int_equal(client_response(&alice), 405);
    assert_true(client_has(&alice, "Allow: GET, HEAD, PATCH\r\n"));
}

static void scopes_are_asked_for(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    ask("GET", "/admin/v1/gateways", token);
    assert_int_equal(client_response(&alice), 403);
    world_token(&world, "alice", "admin", 60000, token);
    ask("GET", "/admin/v1/gateways", token);
    assert_int_equal(client_response(&alice), 200);
    ask("GET", "/admin/v1/gateways", "no.such.token");
    assert_int_equal(client_response(&alice), 401);
}

/* Two tokens name two people, and a proxy may have looked at the other one. */
static void two_authorizations_are_refused(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    static const char *const paths[] = {"/v1/me", "/v1/ws"};
    world_token(&world, "alice", "", 60000, token);
    for (size_t i = 0; i < 2; i++) {
        client_print(&alice,
                     "GET %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"
                     "authorization: Basic YTpi\r\n\r\n",
                     paths[i], token);
        assert_int_equal(client_response(&alice), 400);
        assert_true(client_has(&alice, "more than one Authorization"));
    }
    ask("GET", "/v1/me", token);
    assert_int_equal(client_response(&alice), 200);
}

/* ---- bounds and draining ---- */

static void beyond_the_bound_connections_are_refused(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    ask("GET", "/v1/me", token);
    world_settle(&world);
    world.rest->connections_max = 1;
    client_dial(&bob, &world, 0);
    assert_int_equal(client_response(&bob), 503);
    assert_true(client_has(&bob, "Retry-After:"));
    client_expect_end(&bob);
    world.rest->connections_max = 1000;
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
}

/* Half a request is none, and keeps its place from when it began. */
static void who_waits_longest_for_a_request_gives_way(void **unused)
{
    (void)unused;
    static struct client carol;
    client_dial(&bob, &world, 0);
    client_print(&alice, HEALTH);
    assert_int_equal(client_response(&alice), 200);
    world.rest->connections_max = 2;
    client_dial(&carol, &world, 0);
    client_expect_end(&bob);
    client_print(&carol, HEALTH "GET /healthz HT");
    assert_int_equal(client_response(&carol), 200);
    client_dial(&bob, &world, 0);
    client_expect_end(&alice);
    client_print(&bob, HEALTH);
    assert_int_equal(client_response(&bob), 200);
    client_dial(&alice, &world, 0);
    client_expect_end(&carol);
    client_print(&bob, HALF_A_BODY);
    world_settle(&world);
    client_dial(&carol, &world, 0);
    client_expect_end(&alice);
    client_print(&carol, HALF_A_BODY);
    world_settle(&world);
    client_dial(&alice, &world, 0);
    client_expect_end(&bob);
    assert_int_equal(world.rest->listener.session_count, 2);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_DISPLACED), 5);
    world.rest->connections_max = 1000;
    client_hang_up(&carol);
}

/* A connection that is ending still has its descriptor. */
static void connections_that_are_ending_count_for_the_bound(void **unused)
{
    (void)unused;
    client_connect(&bob, &world, "bob");
    connection_end(&world_session(&world, "bob")->connection, CLOSING_ADMIN, -1);
    world_settle(&world);
    client_hang_up(&alice);
    world.rest->connections_max = 1;
    client_dial(&alice, &world, 0);
    assert_int_equal(client_response(&alice), 503);
    world.rest->connections_max = 1000;
    client_hang_up(&bob);
}

static void a_drain_closes_the_idle_and_answers_those_who_asked(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    client_dial(&bob, &world, 0);
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    ask("GET", "/v1/me", token);
    world_settle(&world);
    world_drain(&world);
    assert_false(world_drained(&world));
    client_expect_end(&bob);
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
    assert_true(client_has(&alice, "Connection: close"));
    client_expect_end(&alice);
    assert_true(world_drained(&world));
}

/* What a load balancer with a connection of its own sees of a drain. */
static void while_others_leave_a_kept_connection_is_told_of_the_drain(void **unused)
{
    (void)unused;
    struct client balancer;
    client_connect(&bob, &world, "bob");
    client_dial(&balancer, &world, 0);
    client_print(&balancer, "GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_int_equal(client_response(&balancer), 200);
    world_drain(&world);
    assert_false(world_drained(&world));
    client_print(&balancer, "GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_int_equal(client_response(&balancer), 503);
    assert_true(client_has(&balancer, "draining"));
    assert_true(client_has(&balancer, "Connection: close"));
    client_expect_end(&balancer);
    client_hang_up(&bob);
}

static void when_the_drain_s_time_is_up_nobody_is_waited_for(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.handlers->ledger->time_limit_ms = 3600000;
    world.ledger.holding = true;
    ask("GET", "/v1/me", token);
    world_settle(&world);
    world_drain(&world);
    world_advance(&world, world.config.gateway.shutdown.drain_timeout_ms - 1);
    assert_false(world_drained(&world));
    world_advance(&world, 1);
    client_expect_end(&alice);
    assert_true(world_drained(&world));
    fake_ledger_release_all(&world.ledger); /* the answer finds nobody */
    world_settle(&world);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(one_who_says_nothing_is_closed_in_time),
        TEST(a_slow_head_is_answered_408_and_closed),
        TEST(a_slow_body_is_answered_408_and_closed),
        TEST(an_idle_connection_is_kept_so_long_and_no_longer),
        TEST(half_a_request_behind_another_has_a_header_s_time_not_an_idle_one_s),
        TEST(a_peer_that_stays_after_its_last_answer_is_cut_off),
        TEST(pipelined_requests_are_answered_in_order_one_at_a_time),
        TEST(a_burst_of_requests_is_answered_whole),
        TEST(answers_nobody_reads_do_not_pile_up),
        TEST(a_peer_that_shuts_its_side_down_gets_its_answer),
        TEST(a_peer_that_ends_after_its_last_request_is_not_waited_for),
        TEST(a_body_is_asked_for_where_the_peer_waits_for_that),
        TEST(a_body_beyond_the_bound_is_refused),
        TEST(a_head_that_is_none_is_refused_and_the_rest_not_taken_for_a_request),
        TEST(a_path_under_another_method_says_which),
        TEST(scopes_are_asked_for),
        TEST(two_authorizations_are_refused),
        TEST(beyond_the_bound_connections_are_refused),
        TEST(who_waits_longest_for_a_request_gives_way),
        TEST(connections_that_are_ending_count_for_the_bound),
        TEST(a_drain_closes_the_idle_and_answers_those_who_asked),
        TEST(while_others_leave_a_kept_connection_is_told_of_the_drain),
        TEST(when_the_drain_s_time_is_up_nobody_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
