/*
 * HTTP when out of memory. A series of requests is sent with the first, second, third … allocation failing,
 * then with all allocations failing from each one on. Whatever fails, each request is answered or its connection
 * is closed. Nothing leaks (the sanitizer checks), and afterwards all requests are served as before.
 */
#include "http/http_connection.h"

#include "support/alloc_fault.h"
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct request {
    const char *line;
    const char *body;
    unsigned status; /* with memory */
} requests[] = {
    {"GET /v1/me", "", 200},
    {"PATCH /v1/me", "{\"presence_visibility\":\"nobody\"}", 200},
    {"PATCH /v1/me", "{\"presence_visibility\":\"friends\"}", 400},
    {"GET /v1/presence/bob", "", 200},
    {"GET /v1/presence?users=bob,carol", "", 200},
    {"GET /v1/presence?users=", "", 400},
    {"GET /admin/v1/gateways", "", 200},
    {"GET /admin/v1/connections?user=bob", "", 200},
    {"GET /admin/v1/explain/bob", "", 200},
    {"POST /v1/users/bob/deliver", "{\"any\":[\"thing\"]}", 202},
    {"GET /metrics", "", 200},
    {"GET /v1/friends?limit=2", "", 200},
    {"GET /v1/friends?status=online", "", 200},
    {"GET /v1/friends?in_call=false&after=bob", "", 200},
    {"GET /healthz", "", 200},
    {"GET /readyz", "", 200},
    {"GET /", "", 200},
    {"PUT /v1/me", "{}", 405},
    {"OPTIONS /v1/me", "", 204},
    {"GET /no/such/path", "", 404},
};

enum { REQUESTS = sizeof(requests) / sizeof(requests[0]) };

static struct world world;
static struct client alice, bob;
static char token[WORLD_TOKEN_BYTES_MAX];

static unsigned send_request(const struct request *request)
{
    client_print(&alice,
                 "%s HTTP/1.1\r\nHost: test\r\nOrigin: https://page.example\r\n"
                 "Authorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n%s",
                 request->line, token, strlen(request->body), request->body);
    unsigned status = client_response(&alice);
    if (status == 0) { /* the ledger answers by its time limit */
        world_advance(&world, LEDGER_TIME_LIMIT_MS);
        status = client_response(&alice);
    }
    return status;
}

/* The client must not be blamed. */
static void expect_out_of_memory(const char *line, unsigned status)
{
    if (status != 503 || client_has(&alice, "INVALID_MESSAGE"))
        fail_msg("%s was answered %u: %s", line, status, alice.text);
}

static void send_all_requests(bool with_memory)
{
    client_dial(&alice, &world, 0);
    for (size_t i = 0; i < REQUESTS; i++) {
        unsigned status = send_request(&requests[i]);
        if (with_memory)
            assert_int_equal(status, requests[i].status);
        else if (status == 0 && !alice.ended)
            fail_msg("%s was not answered", requests[i].line);
        else if (status != 0 && status != requests[i].status)
            expect_out_of_memory(requests[i].line, status);
        if (!alice.ended && !client_has(&alice, "Connection: close"))
            continue;
        client_hang_up(&alice);
        client_dial(&alice, &world, 0);
    }
    client_hang_up(&alice);
}

static size_t send_requests_without_memory(alloc_fault_start fail_at, size_t n)
{
    fail_at(n);
    send_all_requests(false);
    size_t failed = alloc_fault_off();
    send_all_requests(true);
    world_advance(&world, 1000);
    assert_int_equal(world.rest->listener.connection_count, 0);
    return failed;
}

static void requests_are_answered_or_the_connection_closed_when_out_of_memory(void **unused)
{
    (void)unused;
    static const alloc_fault_start starts[] = {alloc_fault_after, alloc_fault_from};
    world_open(&world,
               WORLD_SETS("limits.settings_per_minute=0", "limits.rest_per_second_per_user=0",
                          "limits.reads_per_second_per_user=0"));
    fake_ledger_befriend(&world.ledger, "alice", "bob");
    fake_ledger_befriend(&world.ledger, "alice", "carol");
    fake_ledger_befriend(&world.ledger, "alice", "dave");
    world_token(&world, "alice", "admin deliver", 3600000, token);
    for (int i = 0; i < 2; i++) {
        size_t n = 1;
        while (send_requests_without_memory(starts[i], n))
            n++;
        assert_in_range(n, 50, 5000); /* the number of allocations that failed, one in each run */
    }
    world_close(&world);
}

/* The fake ledger creates no chats, so the answer is 503 with memory too. */
static void chat_creation_is_answered_503_when_out_of_memory(void **unused)
{
    (void)unused;
    static const struct request request = {"POST /v1/chats", "{\"members\":[\"bob\"]}", 503};
    world_open(&world, WORLD_DEFAULTS);
    world_token(&world, "alice", "", 3600000, token);
    size_t failed = 1;
    for (size_t n = 1; failed; n++) {
        alloc_fault_after(n);
        client_dial(&alice, &world, 0);
        unsigned status = send_request(&request);
        failed = alloc_fault_off();
        if (status != 0)
            expect_out_of_memory(request.line, status);
        client_hang_up(&alice);
    }
    world_close(&world);
}

/* Head and body arrive in pieces, and the client closes in the middle. */
static void request_cut_off_in_pieces_leaves_nothing_behind_when_out_of_memory(void **unused)
{
    (void)unused;
    static const char text[] = "PATCH /v1/me HTTP/1.1\r\nHost: test\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    world_open(&world, WORLD_DEFAULTS);
    size_t failed = 1;
    for (size_t n = 1; failed; n++) {
        alloc_fault_after(n);
        client_dial(&bob, &world, 0);
        for (size_t at = 0; at < sizeof(text) - 1; at += 7) {
            size_t left = sizeof(text) - 1 - at;
            client_write(&bob, text + at, left < 7 ? left : 7);
            world_settle(&world);
        }
        failed = alloc_fault_off();
        client_hang_up(&bob);
        assert_int_equal(world.rest->listener.connection_count, 0);
    }
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_answered_or_the_connection_closed_when_out_of_memory),
        cmocka_unit_test(chat_creation_is_answered_503_when_out_of_memory),
        cmocka_unit_test(request_cut_off_in_pieces_leaves_nothing_behind_when_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
