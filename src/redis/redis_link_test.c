/* A link against real servers: that answers come once and in order, and what happens when they do not. */
#include "redis/redis_link.h"

#include "redis/redis_calls.h"
#include "redis/redis_wire.h"
#include "socket/tls.h"
#include "support/redis_server.h"
#include "support/worker_loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON_MS = 5000 };

struct fixture {
    struct worker_loop worker;
    struct redis_links links;
    struct redis_link *link;
    struct redis_server server;
    enum redis_problem wanted;
    unsigned changes;
    unsigned pushes;
    /* of the answers to numbered questions */
    unsigned asked;
    unsigned answered;
    unsigned without_reply;
    unsigned in_disorder;
    unsigned errors;
    char last[128];
};

static void changed(struct redis_link *link, void *arg)
{
    (void)link;
    ((struct fixture *)arg)->changes++;
}

static void push(struct redis_link *link, void *arg, const struct resp_value *value)
{
    (void)link;
    (void)value;
    ((struct fixture *)arg)->pushes++;
}

static const struct redis_link_owner owner = {changed, push};

static bool has_problem(void *arg)
{
    struct fixture *fixture = arg;
    return redis_link_problem(fixture->link) == fixture->wanted;
}

static bool all_answered(void *arg)
{
    struct fixture *fixture = arg;
    return fixture->answered == fixture->asked;
}

static void await_problem(struct fixture *fixture, enum redis_problem problem, int64_t limit_ms)
{
    fixture->wanted = problem;
    worker_loop_until(&fixture->worker, has_problem, fixture, limit_ms);
    assert_string_equal(redis_problem_name(redis_link_problem(fixture->link)),
                        redis_problem_name(problem));
}

static void await_answers(struct fixture *fixture)
{
    assert_true(worker_loop_until(&fixture->worker, all_answered, fixture, SOON_MS));
}

/* Questions are "ECHO <number>": each answer must be the next number. */
static void take_number(void *arg, const struct resp_value *reply)
{
    struct fixture *fixture = arg;
    char expected[16];
    snprintf(expected, sizeof(expected), "%u", fixture->answered++);
    if (!reply)
        fixture->without_reply++;
    else if (reply->type == RESP_ERROR)
        fixture->errors++;
    else if (!slice_is(reply->text, expected))
        fixture->in_disorder++;
}

static void take_text(void *arg, const struct resp_value *reply)
{
    struct fixture *fixture = arg;
    fixture->answered++;
    struct slice text =
        reply ? slice_first(reply->text, sizeof(fixture->last) - 1) : SLICE("nothing");
    snprintf(fixture->last, sizeof(fixture->last), "%.*s", SLICE_FORMAT(text));
}

static bool send_words(struct fixture *fixture, const struct slice *words, size_t count,
                       void (*done)(void *arg, const struct resp_value *reply))
{
    struct buffer command = BUFFER_INIT;
    resp_write_command(&command, words, count);
    bool taken = redis_link_send(fixture->link, buffer_slice(&command), done, fixture);
    buffer_free(&command);
    fixture->asked += taken;
    return taken;
}

static bool echo_number(struct fixture *fixture)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", fixture->asked);
    return send_words(fixture, (const struct slice[]){SLICE("ECHO"), slice_of(number)}, 2,
                      take_number);
}

static const char *ask(struct fixture *fixture, const char *line)
{
    struct slice words[8];
    size_t count = 0;
    for (struct slice rest = slice_of(line); rest.data; count++)
        rest = slice_split(rest, ' ', &words[count]);
    assert_true(send_words(fixture, words, count, take_text));
    await_answers(fixture);
    return fixture->last;
}

static void open_link_at(struct fixture *fixture, const char *host, uint16_t port)
{
    struct redis_endpoint endpoint;
    redis_endpoint_set(&endpoint, slice_of(host), port);
    fixture->link = redis_link_make(&fixture->links, &endpoint, &owner, fixture);
    assert_non_null(fixture->link);
}

static void open_link(struct fixture *fixture, const char *const *options)
{
    redis_server_start(&fixture->server, options);
    open_link_at(fixture, "127.0.0.1", fixture->server.port);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    *state = fixture;
    worker_loop_open(&fixture->worker);
    fixture->links = (struct redis_links){
        .loop = &fixture->worker.loop,
        .streams = &fixture->worker.streams,
        .random = &fixture->worker.random,
        .metrics = &fixture->worker.metrics,
        .identity = {.user = "", .password = "", .name = "rollcall", .alone = true}};
    list_init(&fixture->links.ending);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    redis_link_end(&fixture->link);
    redis_links_reap(&fixture->links);
    tls_context_drop(&fixture->links.tls);
    redis_server_stop(&fixture->server);
    worker_loop_close(&fixture->worker);
    free(fixture);
    return 0;
}

static void commands_wait_for_the_first_connection(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    assert_int_equal(redis_link_problem(fixture->link), REDIS_NOT_TRIED);
    for (int i = 0; i < 10; i++)
        assert_true(echo_number(fixture));
    assert_int_equal(fixture->answered, 0);
    await_answers(fixture);
    assert_int_equal(fixture->without_reply + fixture->in_disorder + fixture->errors, 0);
    assert_int_equal(redis_link_problem(fixture->link), REDIS_FINE);
    assert_string_equal(ask(fixture, "CLIENT GETNAME"), "rollcall");
}

static void a_hundred_thousand_answers_come_in_order(void **state)
{
    enum { COMMANDS = 100000 };
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    int64_t start_us = clock_microseconds();
    for (unsigned refused = 0; fixture->answered < COMMANDS;) {
        while (fixture->asked < COMMANDS && echo_number(fixture))
            ;
        if (fixture->asked < COMMANDS && refused++ == 0)
            assert_int_equal(redis_link_pending(fixture->link), REDIS_PENDING_MAX);
        loop_turn(&fixture->worker.loop, 1000);
    }
    print_message("%d commands in %lld ms\n", COMMANDS,
                  (long long)(clock_microseconds() - start_us) / 1000);
    assert_int_equal(fixture->without_reply + fixture->in_disorder + fixture->errors, 0);
}

static void what_cannot_be_sent_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    char *long_text = calloc(1, 1 << 20);
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    const struct slice words[] = {SLICE("ECHO"), {long_text, 1 << 20}};
    unsigned taken = 0;
    while (taken < 100 && send_words(fixture, words, 2, take_text))
        taken++;
    assert_in_range(taken, 20, REDIS_OUT_BYTES_MAX >> 20);
    await_answers(fixture);
    assert_string_not_equal(fixture->last, "nothing");
    free(long_text);
}

static void a_hanging_server_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    worker_loop_run(&fixture->worker, 700);
    redis_server_pause(&fixture->server);
    int64_t start_us = clock_microseconds();
    await_problem(fixture, REDIS_SILENT, SOON_MS);
    int64_t noticed_ms = (clock_microseconds() - start_us) / 1000;
    print_message("noticed after %lld ms\n", (long long)noticed_ms);
    assert_in_range(noticed_ms, 0, REDIS_PING_INTERVAL_MS + REDIS_COMMAND_LIMIT_MS + 200);
    assert_false(echo_number(fixture));
    redis_server_resume(&fixture->server);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    assert_true(echo_number(fixture));
    await_answers(fixture);
    assert_int_equal(fixture->in_disorder + fixture->without_reply, 0);
}

static void commands_to_a_hanging_server_are_answered_in_time(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    redis_server_pause(&fixture->server);
    for (int i = 0; i < 1000; i++)
        assert_true(echo_number(fixture));
    int64_t start_us = clock_microseconds();
    await_answers(fixture);
    int64_t waited_ms = (clock_microseconds() - start_us) / 1000;
    assert_in_range(waited_ms, REDIS_COMMAND_LIMIT_MS - 100, REDIS_COMMAND_LIMIT_MS + 300);
    assert_int_equal(fixture->without_reply, 1000);
    redis_server_resume(&fixture->server);
}

static void a_killed_server_is_found_again(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    redis_server_pause(&fixture->server);
    for (int i = 0; i < 100; i++)
        assert_true(echo_number(fixture));
    loop_turn(&fixture->worker.loop, 0);
    redis_server_kill(&fixture->server);
    await_answers(fixture);
    assert_int_equal(fixture->without_reply, 100);
    assert_int_not_equal(redis_link_problem(fixture->link), REDIS_FINE);
    await_problem(fixture, REDIS_UNREACHABLE, SOON_MS);
    assert_true(fixture->worker.metrics.values[METRIC_REDIS_CONNECTION_ERRORS] > 0);
    redis_server_restart(&fixture->server);
    await_problem(fixture, REDIS_FINE, 2 * REDIS_BACKOFF_MAX_MS);
}

static void logins_are_given_and_their_refusal_is_told_apart(void **state)
{
    struct fixture *fixture = *state;
    fixture->links.identity.password = "wrong";
    redis_server_start(&fixture->server, REDIS_OPTIONS("--requirepass", "secret"));
    fixture->server.password = "secret";
    redis_server_expect(&fixture->server, "OK", "ACL", "SETUSER", "app", "on", ">other", "~*", "&*",
                        "+@all", NULL);
    open_link_at(fixture, "127.0.0.1", fixture->server.port);
    await_problem(fixture, REDIS_LOGIN_REFUSED, SOON_MS);
    assert_false(echo_number(fixture));
    fixture->links.identity.password = "secret";
    await_problem(fixture, REDIS_FINE, SOON_MS);
    assert_string_equal(ask(fixture, "ACL WHOAMI"), "default");
    redis_link_end(&fixture->link);
    fixture->links.identity.user = "app";
    fixture->links.identity.password = "other";
    fixture->links.identity.database = 3;
    open_link_at(fixture, "localhost", fixture->server.port);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    assert_string_equal(ask(fixture, "ACL WHOAMI"), "app");
    ask(fixture, "CLIENT INFO");
    assert_string_equal(ask(fixture, "SET in-three x"), "OK");
    redis_server_expect(&fixture->server, "0", "EXISTS", "in-three", NULL);
    fixture->links.identity.password = "";
    redis_link_end(&fixture->link);
    open_link_at(fixture, "127.0.0.1", fixture->server.port);
    await_problem(fixture, REDIS_LOGIN_REFUSED, SOON_MS);
}

static void a_server_without_hello_is_spoken_to_in_version_2(void **state)
{
    struct fixture *fixture = *state;
    fixture->links.identity.password = "secret";
    fixture->links.identity.database = 2;
    open_link(fixture,
              REDIS_OPTIONS("--requirepass", "secret", "--rename-command", "HELLO", "GOODBYE"));
    await_problem(fixture, REDIS_FINE, SOON_MS);
    assert_string_equal(ask(fixture, "CLIENT GETNAME"), "rollcall");
    assert_string_equal(ask(fixture, "SET a b"), "OK");
    ask(fixture, "CLIENT INFO");
    assert_non_null(strstr(fixture->last, "name=rollcall"));
}

static void a_replica_is_refused(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_OPTIONS("--replicaof", "127.0.0.1 1"));
    await_problem(fixture, REDIS_READ_ONLY, SOON_MS);
    redis_server_expect(&fixture->server, "OK", "REPLICAOF", "NO", "ONE", NULL);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    redis_server_expect(&fixture->server, "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    fixture->links.identity.alone = false; /* by what it answers, then */
    if (redis_link_takes(fixture->link) &&
        send_words(fixture, (const struct slice[]){SLICE("SET"), SLICE("a"), SLICE("b")}, 3,
                   take_text))
        await_answers(fixture);
    assert_int_not_equal(redis_link_problem(fixture->link), REDIS_FINE);
}

static void a_full_server_is_noticed_and_forgiven(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_OPTIONS("--maxmemory-policy", "noeviction"));
    await_problem(fixture, REDIS_FINE, SOON_MS);
    redis_server_expect(&fixture->server, "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(strncmp(ask(fixture, "SET a b"), "OOM", 3), 0);
    assert_int_equal(redis_link_problem(fixture->link), REDIS_OUT_OF_MEMORY);
    assert_string_equal(ask(fixture, "ECHO reads-go-on"), "reads-go-on");
    worker_loop_run(&fixture->worker, 1200);
    assert_int_equal(redis_link_problem(fixture->link), REDIS_OUT_OF_MEMORY);
    redis_server_expect(&fixture->server, "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    assert_string_equal(ask(fixture, "SET a b"), "OK");
}

static void a_server_that_loads_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_OPTIONS("--enable-debug-command", "yes", "--key-load-delay", "20000",
                                     "--loading-process-events-interval-bytes", "1024",
                                     "--rdbcompression", "no"));
    redis_server_expect(&fixture->server, "OK", "DEBUG", "POPULATE", "100", "key", "100", NULL);
    redis_server_expect(&fixture->server, "OK", "SAVE", NULL);
    redis_server_kill(&fixture->server);
    redis_server_restart(&fixture->server);
    await_problem(fixture, REDIS_LOADING, SOON_MS);
    await_problem(fixture, REDIS_FINE, 2 * SOON_MS);
}

static void too_many_clients_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_OPTIONS("--maxclients", "1"));
    open_link_at(fixture, "127.0.0.1", fixture->server.port);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    struct redis_link *first = fixture->link;
    open_link_at(fixture, "127.0.0.1", fixture->server.port);
    await_problem(fixture, REDIS_CROWDED, SOON_MS);
    redis_link_end(&first);
    await_problem(fixture, REDIS_FINE, SOON_MS);
}

static void what_is_not_redis_is_told_apart(void **state)
{
    struct fixture *fixture = *state;
    open_link_at(fixture, "127.0.0.1", 1);
    await_problem(fixture, REDIS_UNREACHABLE, SOON_MS);
    redis_link_end(&fixture->link);
    open_link_at(fixture, "no.such.host.invalid", 1);
    await_problem(fixture, REDIS_NAME_UNKNOWN, 2 * SOON_MS);
}

static void an_ended_link_answers_what_waits(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    for (int i = 0; i < 10; i++)
        assert_true(echo_number(fixture));
    redis_link_end(&fixture->link);
    assert_null(fixture->link);
    assert_int_equal(fixture->answered, 10);
    assert_int_equal(fixture->without_reply, 10);
    worker_loop_run(&fixture->worker, 50);
    assert_true(list_empty(&fixture->links.ending));
}

static void end_from_within(void *arg, const struct resp_value *reply)
{
    struct fixture *fixture = arg;
    (void)reply;
    fixture->answered++;
    redis_link_end(&fixture->link);
}

static void a_link_may_be_ended_by_an_answer(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    send_words(fixture, (const struct slice[]){SLICE("PING")}, 1, end_from_within);
    for (int i = 0; i < 3; i++)
        send_words(fixture, (const struct slice[]){SLICE("PING")}, 1, take_text);
    await_answers(fixture);
    assert_string_equal(fixture->last, "nothing");
    worker_loop_run(&fixture->worker, 50);
    assert_true(list_empty(&fixture->links.ending));
}

static void fenced_commands_are_answered_together(void **state)
{
    struct fixture *fixture = *state;
    open_link(fixture, REDIS_DEFAULTS);
    assert_true(redis_link_send_fenced(fixture->link,
                                       SLICE("*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n"),
                                       take_text, fixture));
    fixture->asked++;
    await_answers(fixture);
    assert_string_equal(fixture->last, "PONG");
    assert_int_equal(fixture->pushes, 2);
    assert_true(redis_link_send_fenced(
        fixture->link, SLICE("*1\r\n$9\r\nSUBSCRIBE\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"),
        take_text, fixture));
    fixture->asked++;
    await_answers(fixture);
    assert_non_null(strstr(fixture->last, "wrong number of arguments"));
    assert_int_equal(fixture->pushes, 3);
    assert_string_equal(ask(fixture, "ECHO x"), "x");
}

/* A certificate for 127.0.0.1, signed by itself. */
static void make_certificate(const char *cert, const char *key)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execlp("openssl", "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
               "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=redis", "-addext",
               "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void tls_is_spoken_with_those_we_trust(void **state)
{
    struct fixture *fixture = *state;
    char error[TLS_ERROR_TEXT_MAX];
    char folder[] = P_tmpdir "/rollcall-tls-XXXXXX";
    char cert[64];
    char key[64];
    char tls_port[8];
    assert_non_null(mkdtemp(folder));
    snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    make_certificate(cert, key);
    redis_server_start(&fixture->server, REDIS_DEFAULTS);
    uint16_t port = fixture->server.port;
    redis_server_stop(&fixture->server); /* its port is free, and is not its TLS port below */
    snprintf(tls_port, sizeof(tls_port), "%u", port);
    redis_server_start(&fixture->server,
                       REDIS_OPTIONS("--tls-port", tls_port, "--tls-cert-file", cert,
                                     "--tls-key-file", key, "--tls-ca-cert-file", cert,
                                     "--tls-auth-clients", "no"));
    fixture->links.tls = tls_context_load_client(NULL, error);
    assert_non_null(fixture->links.tls);
    open_link_at(fixture, "127.0.0.1", port);
    await_problem(fixture, REDIS_DISTRUSTED, SOON_MS);
    redis_link_end(&fixture->link);
    worker_loop_run(&fixture->worker, 50);
    tls_context_drop(&fixture->links.tls);
    fixture->links.tls = tls_context_load_client(cert, error);
    assert_non_null(fixture->links.tls);
    open_link_at(fixture, "127.0.0.1", port);
    await_problem(fixture, REDIS_FINE, SOON_MS);
    for (int i = 0; i < 5000; i++)
        assert_true(echo_number(fixture));
    await_answers(fixture);
    assert_int_equal(fixture->without_reply + fixture->in_disorder, 0);
    redis_link_end(&fixture->link);
    open_link_at(fixture, "localhost", port); /* for which the certificate is not */
    await_problem(fixture, REDIS_DISTRUSTED, SOON_MS);
    redis_link_end(&fixture->link);
    open_link_at(fixture, "127.0.0.1", fixture->server.port); /* no TLS there */
    await_problem(fixture, REDIS_SILENT, SOON_MS);
    unlink(cert);
    unlink(key);
    rmdir(folder);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(commands_wait_for_the_first_connection),
        with_fixture(a_hundred_thousand_answers_come_in_order),
        with_fixture(what_cannot_be_sent_is_bounded),
        with_fixture(a_hanging_server_is_noticed),
        with_fixture(commands_to_a_hanging_server_are_answered_in_time),
        with_fixture(a_killed_server_is_found_again),
        with_fixture(logins_are_given_and_their_refusal_is_told_apart),
        with_fixture(a_server_without_hello_is_spoken_to_in_version_2),
        with_fixture(a_replica_is_refused),
        with_fixture(a_full_server_is_noticed_and_forgiven),
        with_fixture(a_server_that_loads_is_waited_for),
        with_fixture(too_many_clients_are_told_apart),
        with_fixture(what_is_not_redis_is_told_apart),
        with_fixture(an_ended_link_answers_what_waits),
        with_fixture(a_link_may_be_ended_by_an_answer),
        with_fixture(fenced_commands_are_answered_together),
        with_fixture(tls_is_spoken_with_those_we_trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
