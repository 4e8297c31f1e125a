/* The client against a small real server on loopback, which answers one request per connection with given bytes. */
#include "http_client/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { TURN_MS = 50, TURNS_MAX = 600, IN_FLIGHT_MAX = 2 };

struct server {
    int fd;
    pthread_t thread;
    char url[64];
    const char *answer; /* NULL: it never answers */
    char request[4096];
    int per_connection; /* requests; 0: one */
    _Atomic int accepted;
};

/* Reads requests that come in one piece each, and answers them. */
static void serve_kept_connection(struct server *server, int fd)
{
    for (int i = 0; i < server->per_connection; i++) {
        ssize_t got = read(fd, server->request, sizeof(server->request) - 1);
        server->request[got > 0 ? got : 0] = '\0';
        if (got <= 0 || write(fd, server->answer, strlen(server->answer)) < 0)
            return;
    }
}

static void *serve_connections(void *arg)
{
    struct server *server = arg;
    int fd;
    while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
        server->accepted++;
        if (server->per_connection) {
            serve_kept_connection(server, fd);
            close(fd);
            continue;
        }
        ssize_t got = read(fd, server->request, sizeof(server->request) - 1);
        server->request[got > 0 ? got : 0] = '\0';
        if (server->answer && write(fd, server->answer, strlen(server->answer)) < 0)
            break;
        if (!server->answer) /* until the client gives up */
            while (read(fd, server->request, 1) > 0)
                ;
        close(fd);
    }
    return NULL;
}

static void start_server(struct server *server, const char *answer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *server = (struct server){.fd = socket(AF_INET, SOCK_STREAM, 0), .answer = answer};
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->fd, 8), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
    snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%d/x", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve_connections, server), 0);
}

static void stop_server(struct server *server)
{
    shutdown(server->fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->fd);
}

struct outcome {
    int count;
    unsigned status;
    char body[256];
    char error[256];
};

static void note_outcome(void *arg, const struct http_client_response *response)
{
    struct outcome *outcome = arg;
    outcome->count++;
    outcome->status = response->status;
    snprintf(outcome->body, sizeof(outcome->body), "%.*s", SLICE_FORMAT(response->body));
    snprintf(outcome->error, sizeof(outcome->error), "%s", response->error ? response->error : "");
}

struct fixture {
    struct loop loop;
    struct http_client *client;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    assert_true(loop_init(&fixture.loop));
    fixture.client = http_client_make(&fixture.loop, IN_FLIGHT_MAX);
    assert_non_null(fixture.client);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    http_client_free(&fixture->client);
    assert_null(fixture->client);
    loop_free(&fixture->loop);
    return 0;
}

static struct http_client_request get(const char *url)
{
    return (struct http_client_request){
        .method = "GET", .url = url, .time_limit_ms = 20000, .body_bytes_max = 100};
}

static struct outcome ask(struct fixture *fixture, const struct http_client_request *request)
{
    struct outcome outcome = {0};
    assert_true(http_client_send(fixture->client, request, note_outcome, &outcome));
    assert_int_equal(outcome.count, 0); /* never inside */
    for (int i = 0; i < TURNS_MAX && !outcome.count; i++)
        loop_turn(&fixture->loop, TURN_MS);
    assert_int_equal(outcome.count, 1);
    return outcome;
}

static void test_request_is_sent_and_its_answer_received(void **state)
{
    struct server server;
    start_server(&server, "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello");
    static const char *const headers[] = {"X-One: 1", NULL};
    struct http_client_request request = get(server.url);
    request.method = "PUT";
    request.headers = headers;
    request.body = SLICE("a body");
    struct outcome outcome = ask(*state, &request);
    stop_server(&server);
    assert_int_equal(outcome.status, 201);
    assert_string_equal(outcome.body, "hello");
    assert_string_equal(outcome.error, "");
    assert_non_null(strstr(server.request, "PUT /x HTTP/1.1\r\n"));
    assert_non_null(strstr(server.request, "X-One: 1\r\n"));
    assert_non_null(strstr(server.request, "\r\n\r\na body"));
}

/* The third one finds that the server has closed the connection meanwhile. */
static void test_connection_and_transfer_are_used_again(void **state)
{
    static const char *const headers[] = {"X-One: 1", "Content-Type: text/plain", NULL};
    struct fixture *fixture = *state;
    struct server server;
    start_server(&server, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    server.per_connection = 2;
    struct http_client_request request = get(server.url);
    request.method = "POST";
    request.headers = headers;
    request.body = SLICE("a long body");
    for (int i = 0; i < 3; i++) {
        struct outcome outcome = ask(fixture, &request);
        assert_int_equal(outcome.status, 200);
        assert_string_equal(outcome.body, "hello");
        assert_string_equal(strstr(server.request, "\r\n\r\n") + 4, i ? "short" : "a long body");
        assert_true((strstr(server.request, "X-One: 1\r\n") != NULL) == (i == 0));
        request.headers = NULL;
        request.body = SLICE("short");
        loop_turn(&fixture->loop, TURN_MS); /* takes note of a connection that was closed */
    }
    assert_int_equal(server.accepted, 2);
    http_client_free(&fixture->client);
    stop_server(&server);
}

static void test_redirect_is_not_followed(void **state)
{
    struct server server;
    start_server(&server,
                 "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n");
    struct http_client_request request = get(server.url);
    struct outcome outcome = ask(*state, &request);
    stop_server(&server);
    assert_int_equal(outcome.status, 302);
}

static void test_too_large_answer_is_an_error(void **state)
{
    struct server server;
    start_server(&server, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n123456");
    struct http_client_request request = get(server.url);
    request.body_bytes_max = 5;
    struct outcome outcome = ask(*state, &request);
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.error, "the response is too large");
    request.body_bytes_max = 6;
    outcome = ask(*state, &request);
    stop_server(&server);
    assert_string_equal(outcome.body, "123456");
}

static void test_garbage_and_a_missing_server_are_errors(void **state)
{
    struct server server;
    start_server(&server, "garbage");
    struct http_client_request request = get(server.url);
    struct outcome outcome = ask(*state, &request);
    assert_int_equal(outcome.status, 0);
    assert_true(strlen(outcome.error) > 0);
    stop_server(&server);
    outcome = ask(*state, &request);
    assert_int_equal(outcome.status, 0);
    assert_true(strlen(outcome.error) > 0);
}

static void test_silent_server_is_given_up_after_the_time_limit(void **state)
{
    struct server server;
    start_server(&server, NULL);
    struct http_client_request request = get(server.url);
    request.time_limit_ms = 200;
    struct outcome outcome = ask(*state, &request);
    stop_server(&server);
    assert_int_equal(outcome.status, 0);
}

static void test_requests_in_flight_are_bounded_and_completed_at_the_end(void **state)
{
    struct fixture *fixture = *state;
    struct server server;
    struct outcome outcomes[IN_FLIGHT_MAX + 1] = {0};
    start_server(&server, NULL);
    struct http_client_request request = get(server.url);
    for (int i = 0; i < IN_FLIGHT_MAX; i++)
        assert_true(http_client_send(fixture->client, &request, note_outcome, &outcomes[i]));
    assert_false(
        http_client_send(fixture->client, &request, note_outcome, &outcomes[IN_FLIGHT_MAX]));
    loop_turn(&fixture->loop, TURN_MS);
    http_client_free(&fixture->client);
    stop_server(&server);
    assert_int_equal(outcomes[0].count, 1);
    assert_int_equal(outcomes[1].count, 1);
    assert_int_equal(outcomes[IN_FLIGHT_MAX].count, 0);
}

static void test_plain_http_beyond_loopback_is_refused(void **state)
{
    struct http_client_request request = get("http://192.0.2.1:9/x");
    request.plain_to_loopback_only = true;
    struct outcome outcome = ask(*state, &request);
    assert_string_equal(outcome.error, "plain HTTP is for loopback addresses only");
    request.url = "file:///etc/passwd";
    outcome = ask(*state, &request);
    assert_int_equal(outcome.status, 0);
    assert_string_equal(outcome.body, "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_request_is_sent_and_its_answer_received),
        TEST(test_connection_and_transfer_are_used_again),
        TEST(test_redirect_is_not_followed),
        TEST(test_too_large_answer_is_an_error),
        TEST(test_garbage_and_a_missing_server_are_errors),
        TEST(test_silent_server_is_given_up_after_the_time_limit),
        TEST(test_requests_in_flight_are_bounded_and_completed_at_the_end),
        TEST(test_plain_http_beyond_loopback_is_refused),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
