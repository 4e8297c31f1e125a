/* One HTTP connection on virtual time: requests one after the other, slow and vanishing clients, limits, draining. */
#include "http/http_connection.h"

#include "base/container.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

enum {
    HEADER_TIMEOUT_MS = 10000,
    MESSAGE_TIMEOUT_MS = 30000,
    IDLE_TIMEOUT_MS = 60000,
    CLOSE_TIMEOUT_MS = 5000
};

#define HEALTH "GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n"
#define HALF_A_BODY "POST /dev/token HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n{"

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

static void send_request(const char *method, const char *path, const char *token)
{
    client_print(&alice, "%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n\r\n", method,
                 path, token);
}

/* ---- time ---- */

static void silent_client_is_closed_after_the_header_timeout(void **unused)
{
    (void)unused;
    world_advance(&world, HEADER_TIMEOUT_MS - 1);
    assert_int_equal(world.rest->listener.connection_count, 1);
    world_advance(&world, 1);
    client_expect_end(&alice);
}

static void slow_head_is_answered_408_and_closed(void **unused)
{
    (void)unused;
    world_advance(&world, 5000);
    client_print(&alice, "GET /healthz HT");
    for (int i = 0; i < 9; i++) { /* single bytes do not prolong the timeout */
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

static void slow_body_is_answered_408_and_closed(void **unused)
{
    (void)unused;
    client_print(&alice, HALF_A_BODY);
    world_advance(&world, MESSAGE_TIMEOUT_MS - 1);
    assert_int_equal(client_response(&alice), 0);
    world_advance(&world, 1);
    assert_int_equal(client_response(&alice), 408);
    client_expect_end(&alice);
}

static void idle_connection_is_closed_after_the_idle_timeout(void **unused)
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

/* The timeout starts with the answer to the request before it. */
static void incomplete_pipelined_request_has_the_header_timeout(void **unused)
{
    (void)unused;
    client_print(&alice, HEALTH "GET /healthz HT");
    assert_int_equal(client_response(&alice), 200);
    world_advance(&world, HEADER_TIMEOUT_MS);
    assert_int_equal(client_response(&alice), 408);
    client_expect_end(&alice);
}

static void client_that_stays_after_its_last_answer_is_cut_off(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.0\r\n\r\n");
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_next(&alice), CLIENT_END); /* our side was shut down */
    world_advance(&world, CLOSE_TIMEOUT_MS - 1);
    assert_int_equal(world.rest->listener.connection_count, 1);
    world_advance(&world, 1);
    assert_int_equal(world.rest->listener.connection_count, 0);
}

/* ---- requests one after the other ---- */

static void pipelined_requests_are_answered_in_order_one_at_a_time(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    send_request("GET", "/v1/me", token);
    client_print(&alice, HEALTH HEALTH);
    send_request("GET", "/no/such/path", token);
    assert_int_equal(client_response(&alice), 0);
    assert_int_equal(world_metric(&world, METRIC_HTTP_REQUESTS), 0); /* answers keep the order */
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
    assert_true(client_has(&alice, "\"user_id\":\"alice\""));
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(client_response(&alice), 404);
}

static void every_request_of_a_burst_is_answered(void **unused)
{
    (void)unused;
    enum { REQUESTS = 1000 };
    int answered = 0;
    static char burst[REQUESTS * (sizeof(HEALTH) - 1)];
    for (int i = 0; i < REQUESTS; i++)
        memcpy(burst + i * (sizeof(HEALTH) - 1), HEALTH, sizeof(HEALTH) - 1);
    for (int i = 0; i < 3; i++) /* more than a connection buffers */
        client_write(&alice, burst, sizeof(burst));
    while (client_response(&alice) == 200)
        answered++;
    assert_int_equal(answered, 3 * REQUESTS);
}

static void answers_that_are_not_read_do_not_accumulate(void **unused)
{
    (void)unused;
    client_dial(&bob, &world, 4096);
    for (int i = 0; i < 200; i++) {
        client_print(&bob, HEALTH);
        world_settle(&world);
    }
    for (struct list *at = world.rest->listener.connections.next;
         at != &world.rest->listener.connections; at = at->next) {
        const struct http_connection *connection =
            CONTAINER_OF(at, struct http_connection, of_listener);
        assert_true(connection->out.len < 2000);
    }
    client_hang_up(&bob);
}

static void client_that_shuts_its_side_down_gets_its_answer(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    send_request("GET", "/v1/me", token);
    shutdown(alice.fd, SHUT_WR);
    world_settle(&world);
    fake_ledger_release_all(&world.ledger);
    assert_int_equal(client_response(&alice), 200);
    client_expect_end(&alice);
    assert_int_equal(world.rest->listener.connection_count, 0);
}

static void connection_of_a_client_that_ended_closes_after_the_last_answer(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    shutdown(alice.fd, SHUT_WR);
    assert_int_equal(client_response(&alice), 200);
    assert_int_equal(world.rest->listener.connection_count, 0);
    client_expect_end(&alice);
}

static void expect_continue_is_answered_with_100(void **unused)
{
    (void)unused;
    client_print(&alice, "POST /dev/token HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n"
                         "Expect: 100-continue\r\n\r\n");
    assert_int_equal(client_response(&alice), 100);
    client_print(&alice, "{}");
    assert_int_equal(client_response(&alice), 404);
}

static void body_of_an_unauthenticated_client_is_not_awaited(void **unused)
{
    (void)unused;
    client_print(&alice, "PATCH /v1/me HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n"
                         "Expect: 100-continue\r\n\r\n{");
    assert_int_equal(client_response(&alice), 401);
    client_expect_end(&alice);
    client_dial(&bob, &world, 0);
    client_print(&bob, "PATCH /v1/me HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer x\r\n"
                       "Content-Length: 1000\r\n\r\n");
    assert_int_equal(client_response(&bob), 401);
    client_expect_end(&bob);
}

static void body_beyond_the_limit_is_answered_413(void **unused)
{
    (void)unused;
    client_print(&alice, "POST /dev/token HTTP/1.1\r\nHost: test\r\nContent-Length: 4097\r\n\r\n");
    assert_int_equal(client_response(&alice), 413);
    client_expect_end(&alice);
}

static void malformed_head_is_refused_and_the_bytes_after_it_are_ignored(void **unused)
{
    (void)unused;
    client_print(&alice, "GET /healthz HTTP/1.1\nHost: test\n\n" HEALTH);
    assert_int_equal(client_response(&alice), 400);
    client_expect_end(&alice);
    assert_int_equal(world_metric(&world, METRIC_PROTOCOL_ERRORS), 1);
}

static void wrong_method_is_answered_405_with_the_allowed_methods(void **unused)
{
    (void)unused;
    client_print(&alice, "DELETE /v1/me HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_int_equal(client_response(&alice), 405);
    assert_true(client_has(&alice, "Allow: GET, HEAD, PATCH\r\n"));
}

static void admin_routes_need_the_admin_scope(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    send_request("GET", "/admin/v1/gateways", token);
    assert_int_equal(client_response(&alice), 403);
    world_token(&world, "alice", "admin", 60000, token);
    send_request("GET", "/admin/v1/gateways", token);
    assert_int_equal(client_response(&alice), 200);
    send_request("GET", "/admin/v1/gateways", "no.such.token");
    assert_int_equal(client_response(&alice), 401);
}

/* A proxy may have checked the other one of two tokens. */
static void second_authorization_header_is_refused(void **unused)
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
    send_request("GET", "/v1/me", token);
    assert_int_equal(client_response(&alice), 200);
}

/* ---- bounds and draining ---- */

static void connection_beyond_the_limit_is_refused(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    send_request("GET", "/v1/me", token);
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

/* An incomplete request counts as none, and its wait starts when it began. */
static void connection_that_waits_longest_for_a_request_is_displaced(void **unused)
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
    assert_int_equal(world.rest->listener.connection_count, 2);
    assert_int_equal(world_metric(&world, METRIC_CONNECTIONS_DISPLACED), 5);
    world.rest->connections_max = 1000;
    client_hang_up(&carol);
}

/* A connection that is ending still has its descriptor. */
static void ending_connections_count_for_the_limit(void **unused)
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

static void drain_closes_idle_connections_and_answers_pending_requests(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    client_dial(&bob, &world, 0);
    world_token(&world, "alice", "", 60000, token);
    world.ledger.holding = true;
    send_request("GET", "/v1/me", token);
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

/* A load balancer may keep one connection open for its checks. */
static void readiness_check_on_a_kept_connection_reports_the_drain(void **unused)
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

static void drain_timeout_closes_connections_with_pending_requests(void **unused)
{
    (void)unused;
    char token[WORLD_TOKEN_BYTES_MAX];
    world_token(&world, "alice", "", 60000, token);
    world.sessions->ledger->time_limit_ms = 3600000;
    world.ledger.holding = true;
    send_request("GET", "/v1/me", token);
    world_settle(&world);
    world_drain(&world);
    world_advance(&world, world.config.gateway.shutdown.drain_timeout_ms - 1);
    assert_false(world_drained(&world));
    world_advance(&world, 1);
    client_expect_end(&alice);
    assert_true(world_drained(&world));
    fake_ledger_release_all(&world.ledger); /* the answer is dropped */
    world_settle(&world);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(silent_client_is_closed_after_the_header_timeout),
        TEST(slow_head_is_answered_408_and_closed),
        TEST(slow_body_is_answered_408_and_closed),
        TEST(idle_connection_is_closed_after_the_idle_timeout),
        TEST(incomplete_pipelined_request_has_the_header_timeout),
        TEST(client_that_stays_after_its_last_answer_is_cut_off),
        TEST(pipelined_requests_are_answered_in_order_one_at_a_time),
        TEST(every_request_of_a_burst_is_answered),
        TEST(answers_that_are_not_read_do_not_accumulate),
        TEST(client_that_shuts_its_side_down_gets_its_answer),
        TEST(connection_of_a_client_that_ended_closes_after_the_last_answer),
        TEST(expect_continue_is_answered_with_100),
        TEST(body_of_an_unauthenticated_client_is_not_awaited),
        TEST(body_beyond_the_limit_is_answered_413),
        TEST(malformed_head_is_refused_and_the_bytes_after_it_are_ignored),
        TEST(wrong_method_is_answered_405_with_the_allowed_methods),
        TEST(admin_routes_need_the_admin_scope),
        TEST(second_authorization_header_is_refused),
        TEST(connection_beyond_the_limit_is_refused),
        TEST(connection_that_waits_longest_for_a_request_is_displaced),
        TEST(ending_connections_count_for_the_limit),
        TEST(drain_closes_idle_connections_and_answers_pending_requests),
        TEST(readiness_check_on_a_kept_connection_reports_the_drain),
        TEST(drain_timeout_closes_connections_with_pending_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
