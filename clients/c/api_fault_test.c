/* Fails the allocations of the HTTP client, one in each run: a request that was accepted gets exactly one answer, and
 * nothing leaks. */
#include "rollcall_api.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURN_MS = 5, TURNS_MAX = 2000 };

static const char ANSWER[] = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "1e\r\n{\"error\":{\"code\":\"NOT_FOUND\"}}\r\n0\r\n\r\n";

struct server {
    int listener;
    int fd; /* -1: none */
    uint16_t port;
};

static void on_answer(void *arg, const struct rollcall_api_answer *answer)
{
    assert_true(answer->code[0] != '\0');
    ++*(int *)arg;
}

static const char *fresh_token(void *arg)
{
    (void)arg;
    return "fresh";
}

static void server_open(struct server *server)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    server->fd = -1;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_return_code(bind(server->listener, (struct sockaddr *)&address, len), 0);
    assert_return_code(listen(server->listener, 4), 0);
    assert_return_code(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
}

/* Answers each request with the same error. */
static void server_run(struct server *server)
{
    char request[4096];
    int fd = accept(server->listener, NULL, NULL);
    if (fd >= 0) {
        if (server->fd >= 0)
            close(server->fd);
        server->fd = fd;
    }
    if (server->fd >= 0 && recv(server->fd, request, sizeof(request), MSG_DONTWAIT) > 0)
        send(server->fd, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL);
}

static void send_two_requests(struct rollcall_api *api, struct server *server)
{
    int expected = 0, answered = 0;
    for (int i = 0; i < 2; i++)
        expected += rollcall_api_request(api, i == 0 ? "GET" : "POST", "/v1/me",
                                         i == 0 ? NULL : "{}", on_answer, &answered);
    for (int turn = 0; turn < TURNS_MAX && answered < expected; turn++) {
        struct pollfd fd = {.fd = rollcall_api_fd(api), .events = rollcall_api_poll_events(api)};
        poll(&fd, 1, TURN_MS);
        rollcall_api_process(api, fd.revents);
        server_run(server);
    }
    assert_int_equal(answered, expected);
}

static void test_each_accepted_request_is_answered_once(void **state)
{
    (void)state;
    struct server server;
    server_open(&server);
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct rollcall_api_options options = {
            .host = "127.0.0.1", .port = server.port, .token = "t", .fresh_token = fresh_token};
        alloc_fault_after(n);
        struct rollcall_api *api = rollcall_api_open(&options);
        if (api)
            send_two_requests(api, &server);
        failed = alloc_fault_off();
        rollcall_api_free(&api);
    }
    if (server.fd >= 0)
        close(server.fd);
    close(server.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_accepted_request_is_answered_once)};
    return cmocka_run_group_tests_name("clients/c api faults", tests, NULL, NULL);
}
