/* Requests of the HTTP API, against a server on loopback that the test controls byte by byte. */
#include "rollcall_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURN_MS = 20, TURNS_MAX = 500, TEXT_BYTES = 4096 };

struct api_fixture {
    struct rollcall_api *api;
    int listener;
    int fd; /* of the accepted connection; -1: none */
    int fresh_count;
    char request[TEXT_BYTES];
    char log[TEXT_BYTES]; /* of each answer: "STATUS CODE JSON|" */
    int64_t retry_after_ms;
};

static const char *fresh_token(void *arg)
{
    struct api_fixture *fixture = arg;
    fixture->fresh_count++;
    return "second";
}

static void on_answer(void *arg, const struct rollcall_api_answer *answer)
{
    struct api_fixture *fixture = arg;
    size_t len = strlen(fixture->log);
    snprintf(fixture->log + len, sizeof(fixture->log) - len, "%u %s %s|", answer->status,
             answer->code, answer->json);
    fixture->retry_after_ms = answer->retry_after_ms;
}

static uint16_t fixture_listen(struct api_fixture *fixture)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    fixture->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(fixture->listener, (struct sockaddr *)&address, len), 0);
    assert_return_code(listen(fixture->listener, 4), 0);
    assert_return_code(getsockname(fixture->listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

static int set_up(void **state)
{
    static struct api_fixture fixture;
    memset(&fixture, 0, sizeof(fixture));
    fixture.fd = -1;
    struct rollcall_api_options options = {.host = "127.0.0.1",
                                           .port = fixture_listen(&fixture),
                                           .token = "first",
                                           .fresh_token = fresh_token,
                                           .arg = &fixture};
    fixture.api = rollcall_api_open(&options);
    assert_non_null(fixture.api);
    *state = &fixture;
    return 0;
}

static void fixture_hang_up(struct api_fixture *fixture)
{
    if (fixture->fd >= 0)
        close(fixture->fd);
    fixture->fd = -1;
}

static int tear_down(void **state)
{
    struct api_fixture *fixture = *state;
    rollcall_api_free(&fixture->api);
    fixture_hang_up(fixture);
    close(fixture->listener);
    return 0;
}

/* One turn of the application's loop. */
static void fixture_turn(struct api_fixture *fixture)
{
    struct pollfd fd = {.fd = rollcall_api_fd(fixture->api),
                        .events = rollcall_api_poll_events(fixture->api)};
    int wait_ms = rollcall_api_wait_ms(fixture->api);
    poll(&fd, 1, wait_ms < 0 || wait_ms > TURN_MS ? TURN_MS : wait_ms);
    rollcall_api_process(fixture->api, fd.revents);
}

static bool is_readable(int fd)
{
    struct pollfd waits = {.fd = fd, .events = POLLIN};
    return fd >= 0 && poll(&waits, 1, 0) == 1;
}

/* The server reads one request, over a new connection if there is one. */
static const char *fixture_read(struct api_fixture *fixture)
{
    size_t len = 0;
    fixture->request[0] = '\0';
    for (int turn = 0; turn < TURNS_MAX && !strstr(fixture->request, "\r\n\r\n"); turn++) {
        fixture_turn(fixture);
        if (is_readable(fixture->listener)) {
            fixture_hang_up(fixture);
            fixture->fd = accept(fixture->listener, NULL, NULL);
        }
        if (!is_readable(fixture->fd))
            continue;
        ssize_t got = recv(fixture->fd, fixture->request + len, TEXT_BYTES - len - 1, 0);
        len += got > 0 ? (size_t)got : 0;
        fixture->request[len] = '\0';
    }
    assert_non_null(strstr(fixture->request, "\r\n\r\n"));
    return fixture->request;
}

static void fixture_send(struct api_fixture *fixture, const char *text)
{
    assert_int_equal(send(fixture->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void fixture_expect(struct api_fixture *fixture, const char *log)
{
    for (int turn = 0; turn < TURNS_MAX && strlen(fixture->log) < strlen(log); turn++)
        fixture_turn(fixture);
    assert_string_equal(fixture->log, log);
}

static void get(struct api_fixture *fixture, const char *path)
{
    assert_true(rollcall_api_request(fixture->api, "GET", path, NULL, on_answer, fixture));
}

#define OK(json_len, json) "HTTP/1.1 200 OK\r\nContent-Length: " json_len "\r\n\r\n" json
#define NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"

/* ---- tests ---- */

static void test_requests_go_in_order_over_one_connection(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    assert_true(rollcall_api_request(fixture->api, "POST", "/v1/chats", "{\"members\":[]}",
                                     on_answer, fixture));
    assert_int_equal(strncmp(fixture_read(fixture), "GET /v1/me HTTP/1.1\r\nHost: 127.0.0.1:", 37),
                     0);
    assert_non_null(strstr(fixture->request, "\r\nAuthorization: Bearer first\r\n"));
    assert_null(strstr(fixture->request, "POST"));
    int fd = fixture->fd;
    fixture_send(fixture, OK("2", "{}"));
    fixture_expect(fixture, "200  {}|");
    fixture_read(fixture);
    assert_int_equal(fixture->fd, fd);
    assert_non_null(strstr(fixture->request, "Content-Length: 14\r\n\r\n{\"members\":[]}"));
    fixture_send(fixture, NO_CONTENT);
    fixture_expect(fixture, "200  {}|204  |");
}

static void test_answer_arrives_in_chunks_and_pieces(void **state)
{
    static const char ANSWER[] = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                                 "4\r\n[1,2\r\n2;x=y\r\n,3\r\n1\r\n]\r\n0\r\n\r\n";
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/chats");
    fixture_read(fixture);
    for (const char *at = ANSWER; *at; at++) {
        fixture_send(fixture, (char[]){*at, '\0'});
        fixture_turn(fixture);
    }
    fixture_expect(fixture, "200  [1,2,3]|");
}

static void test_errors_have_the_code_of_the_server(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/chats/x");
    fixture_read(fixture);
    fixture_send(
        fixture,
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 76\r\n\r\n"
        "{\"error\":{\"code\":\"RATE_LIMITED\",\"message\":\"slow\",\"retry_after_seconds\":2.5}}");
    fixture_expect(fixture, "429 RATE_LIMITED {\"error\":{\"code\":\"RATE_LIMITED\",\"message\":"
                            "\"slow\",\"retry_after_seconds\":2.5}}|");
    assert_int_equal(fixture->retry_after_ms, 2500);
}

/* The parser must not trust that a body is text. */
static void test_error_with_any_bytes_is_read_safely(void **state)
{
    static const char ANSWER[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Length: 12\r\n\r\n{\"error\"\0:{}";
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    assert_int_equal(send(fixture->fd, ANSWER, sizeof(ANSWER) - 1, MSG_NOSIGNAL),
                     sizeof(ANSWER) - 1);
    fixture_expect(fixture, "400 INVALID_MESSAGE {\"error\"|");
}

static void test_errors_of_a_proxy_have_a_code_too(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    fixture_send(fixture, "HTTP/1.1 502 Bad Gateway\r\nRetry-After: 7\r\nConnection: close\r\n"
                          "Content-Length: 4\r\n\r\noops");
    fixture_expect(fixture, "502 SERVICE_UNAVAILABLE oops|");
    assert_int_equal(fixture->retry_after_ms, 7000);
    assert_int_equal(rollcall_api_fd(fixture->api), -1);
}

static void test_refused_token_is_replaced_once(void **state)
{
    static const char REFUSAL[] = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    fixture_send(fixture, REFUSAL);
    assert_non_null(strstr(fixture_read(fixture), "Bearer second\r\n"));
    fixture_send(fixture, REFUSAL);
    fixture_expect(fixture, "401 UNAUTHENTICATED |");
    assert_int_equal(fixture->fresh_count, 1);
}

/* The server may end an idle connection while a request is on its way. */
static void test_request_on_an_ended_connection_is_sent_again(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    fixture_send(fixture, NO_CONTENT);
    fixture_expect(fixture, "204  |");
    get(fixture, "/v1/friends");
    fixture_read(fixture);
    fixture_hang_up(fixture);
    assert_non_null(strstr(fixture_read(fixture), "GET /v1/friends"));
    fixture_hang_up(fixture);
    fixture_expect(fixture, "204  |0 DISCONNECTED |");
}

static void test_post_is_not_sent_twice(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    fixture_send(fixture, NO_CONTENT);
    fixture_expect(fixture, "204  |");
    rollcall_api_request(fixture->api, "POST", "/v1/chats", "{}", on_answer, fixture);
    fixture_read(fixture);
    fixture_hang_up(fixture);
    fixture_expect(fixture, "204  |0 DISCONNECTED |");
}

static void test_connection_that_ended_while_idle_is_replaced(void **state)
{
    struct api_fixture *fixture = *state;
    get(fixture, "/v1/me");
    fixture_read(fixture);
    fixture_send(fixture, NO_CONTENT);
    fixture_expect(fixture, "204  |");
    fixture_hang_up(fixture);
    rollcall_api_request(fixture->api, "POST", "/v1/chats", "{}", on_answer, fixture);
    fixture_read(fixture);
    fixture_send(fixture, NO_CONTENT);
    fixture_expect(fixture, "204  |204  |");
}

static void test_server_that_cannot_be_reached_answers_each_request(void **state)
{
    struct api_fixture *fixture = *state;
    close(fixture->listener);
    fixture->listener = -1;
    get(fixture, "/v1/me");
    get(fixture, "/v1/friends");
    fixture_expect(fixture, "0 DISCONNECTED |0 DISCONNECTED |");
}

static void test_garbage_and_endless_answers_are_refused(void **state)
{
    static const char *const ANSWERS[] = {
        "SSH-2.0-OpenSSH\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    };
    static const char *const LOGS[] = {"0 DISCONNECTED |", "0 TOO_LARGE |", "0 TOO_LARGE |"};
    struct api_fixture *fixture = *state;
    for (size_t i = 0; i < sizeof(ANSWERS) / sizeof(ANSWERS[0]); i++) {
        fixture->log[0] = '\0';
        get(fixture, "/v1/me");
        fixture_read(fixture);
        fixture_send(fixture, ANSWERS[i]);
        fixture_expect(fixture, LOGS[i]);
        assert_int_equal(rollcall_api_fd(fixture->api), -1);
    }
}

static void test_paths_are_escaped(void **state)
{
    (void)state;
    char path[ROLLCALL_API_PATH_BYTES];
    char id[ROLLCALL_API_PATH_BYTES];
    assert_true(rollcall_api_path(path, "/v1/chats/{}/members/{}?x={}", "a/b", "ü ?", "&"));
    assert_string_equal(path, "/v1/chats/a%2Fb/members/%C3%BC%20%3F?x=%26");
    memset(id, 'x', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    assert_false(rollcall_api_path(path, "/v1/chats/{}", id));
}

static void test_requests_that_cannot_be_sent_are_refused(void **state)
{
    struct api_fixture *fixture = *state;
    static char large[ROLLCALL_API_BODY_BYTES_MAX + 2];
    memset(large, 'x', sizeof(large) - 1);
    assert_false(rollcall_api_request(fixture->api, "TRACE", "/", NULL, on_answer, fixture));
    assert_false(rollcall_api_request(fixture->api, "GET", "v1/me", NULL, on_answer, fixture));
    assert_false(
        rollcall_api_request(fixture->api, "GET", "/ HTTP/1.1\r\nX: y", NULL, on_answer, fixture));
    assert_false(
        rollcall_api_request(fixture->api, "POST", "/v1/chats", large, on_answer, fixture));
    for (int i = 0; i < ROLLCALL_API_REQUESTS_MAX; i++)
        get(fixture, "/v1/me");
    assert_false(rollcall_api_request(fixture->api, "GET", "/v1/me", NULL, on_answer, fixture));
    assert_string_equal(fixture->log, "");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_requests_go_in_order_over_one_connection),
        TEST(test_answer_arrives_in_chunks_and_pieces),
        TEST(test_errors_have_the_code_of_the_server),
        TEST(test_error_with_any_bytes_is_read_safely),
        TEST(test_errors_of_a_proxy_have_a_code_too),
        TEST(test_refused_token_is_replaced_once),
        TEST(test_request_on_an_ended_connection_is_sent_again),
        TEST(test_post_is_not_sent_twice),
        TEST(test_connection_that_ended_while_idle_is_replaced),
        TEST(test_server_that_cannot_be_reached_answers_each_request),
        TEST(test_garbage_and_endless_answers_are_refused),
        TEST(test_paths_are_escaped),
        TEST(test_requests_that_cannot_be_sent_are_refused),
    };
    return cmocka_run_group_tests_name("clients/c api", tests, NULL, NULL);
}
