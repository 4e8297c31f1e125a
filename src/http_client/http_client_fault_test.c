/* Sends a request while an allocation fails: it is refused, or completed once, with a whole response or an error. */
#include "http_client/http_client.h"
#include "support/alloc_fault.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"

enum { TURN_MS = 10, TURNS_MAX = 3000 };

struct exchange_at_server {
    int listener;
    int fd; /* of the accepted connection; -1: none */
    char url[64];
};

struct outcome {
    int count;
    unsigned status;
    bool is_whole;
};

static void listen_on_loopback(struct exchange_at_server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *server = (struct exchange_at_server){
        .listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .fd = -1};
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->listener, 8), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d/x", ntohs(address.sin_port));
}

/* Does what can be done without waiting. */
static void serve_a_little(struct exchange_at_server *server)
{
    char request[4096];
    if (server->fd < 0)
        server->fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK);
    if (server->fd < 0 || read(server->fd, request, sizeof(request)) <= 0)
        return;
    assert_int_equal(write(server->fd, ANSWER, strlen(ANSWER)), strlen(ANSWER));
}

static void on_fault_response(void *arg, const struct http_client_response *response)
{
    struct outcome *outcome = arg;
    outcome->count++;
    outcome->status = response->status;
    outcome->is_whole = slice_is(response->body, "hello");
    assert_true((response->status == 0) == (response->error != NULL));
}

static const struct http_client_signing SIGNING = {"aws:amz:here:dynamodb", "key", "secret",
                                                   "token"};

static size_t request_with(const struct http_client_signing *signing, alloc_fault_start fail_at,
                           size_t n)
{
    struct exchange_at_server server;
    struct outcome outcome = {0};
    struct loop loop;
    listen_on_loopback(&server);
    assert_true(loop_init(&loop));
    struct http_client_request request = {.method = "POST",
                                          .url = server.url,
                                          .body = SLICE("{}"),
                                          .signing = signing,
                                          .time_limit_ms = 20000,
                                          .body_bytes_max = 100};
    fail_at(n);
    struct http_client *client = http_client_make(&loop, 1);
    bool sent = client && http_client_send(client, &request, on_fault_response, &outcome);
    for (int i = 0; sent && i < TURNS_MAX && !outcome.count; i++) {
        loop_turn(&loop, TURN_MS);
        serve_a_little(&server);
    }
    size_t failed = alloc_fault_off();
    http_client_free(&client);
    assert_int_equal(outcome.count, sent);
    assert_true(outcome.status == 0 || outcome.is_whole);
    assert_true(failed || outcome.status == 200);
    loop_free(&loop);
    if (server.fd >= 0)
        close(server.fd);
    close(server.listener);
    return failed;
}

static size_t request_once(alloc_fault_start fail_at, size_t n)
{
    return request_with(&SIGNING, fail_at, n);
}

/* Without a signature its handle is kept. */
static size_t request_unsigned(alloc_fault_start fail_at, size_t n)
{
    return request_with(NULL, fail_at, n);
}

static void request_without_memory_is_refused_or_completed_once(void **state)
{
    (void)state;
    /* the client, the transfer, the session token and the body */
    assert_true(alloc_fault_sweep(alloc_fault_after, request_once) > 4);
    assert_true(alloc_fault_sweep(alloc_fault_from, request_once) > 4);
    assert_true(alloc_fault_sweep(alloc_fault_after, request_unsigned) > 4);
    assert_true(alloc_fault_sweep(alloc_fault_from, request_unsigned) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_without_memory_is_refused_or_completed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
