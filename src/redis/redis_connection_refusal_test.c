/* Servers that a connection must not use, or not yet: the problem that it reports for each. */
#include "redis/redis_connection.h"

#include "net/tls.h"
#include "support/redis_connection_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void login_is_sent_and_its_refusal_reported(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    fixture->context.identity.password = "wrong";
    redis_server_start(&fixture->server, REDIS_OPTIONS("--requirepass", "secret"));
    fixture->server.password = "secret";
    redis_server_expect(&fixture->server, "OK", "ACL", "SETUSER", "app", "on", ">other", "~*", "&*",
                        "+@all", NULL);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_LOGIN_REFUSED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_false(redis_connection_fixture_echo(fixture));
    fixture->context.identity.password = "secret";
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_string_equal(redis_connection_fixture_run(fixture, "ACL WHOAMI"), "default");
    redis_connection_end(&fixture->connection);
    fixture->context.identity.user = "app";
    fixture->context.identity.password = "other";
    fixture->context.identity.database = 3;
    redis_connection_fixture_open_at(fixture, "localhost", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_string_equal(redis_connection_fixture_run(fixture, "ACL WHOAMI"), "app");
    redis_connection_fixture_run(fixture, "CLIENT INFO");
    assert_string_equal(redis_connection_fixture_run(fixture, "SET in-three x"), "OK");
    redis_server_expect(&fixture->server, "0", "EXISTS", "in-three", NULL);
    fixture->context.identity.password = "";
    redis_connection_end(&fixture->connection);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_LOGIN_REFUSED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
}

/* A server repeats an unknown command with its arguments. */
static void password_is_not_logged(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    char text[4096] = "";
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    redis_server_start(&fixture->server, REDIS_OPTIONS("--rename-command", "HELLO", "",
                                                       "--rename-command", "AUTH", ""));
    fixture->context.identity.password = "hunter2";
    dup2(fileno(log), STDERR_FILENO);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_LOGIN_REFUSED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(log);
    assert_int_not_equal(fread(text, 1, sizeof(text) - 1, log), 0);
    fclose(log);
    assert_non_null(strstr(text, "login_refused"));
    assert_null(strstr(text, "hunter2"));
}

static void server_without_hello_is_used_in_version_2(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    fixture->context.identity.password = "secret";
    fixture->context.identity.database = 2;
    redis_connection_fixture_open(
        fixture, REDIS_OPTIONS("--requirepass", "secret", "--rename-command", "HELLO", "GOODBYE"));
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_string_equal(redis_connection_fixture_run(fixture, "CLIENT GETNAME"), "rollcall");
    assert_string_equal(redis_connection_fixture_run(fixture, "SET a b"), "OK");
    redis_connection_fixture_run(fixture, "CLIENT INFO");
    assert_non_null(strstr(fixture->last, "name=rollcall"));
}

static void replica_is_refused(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_OPTIONS("--replicaof", "127.0.0.1 1"));
    redis_connection_fixture_await_problem(fixture, REDIS_READ_ONLY,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_server_expect(&fixture->server, "OK", "REPLICAOF", "NO", "ONE", NULL);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_server_expect(&fixture->server, "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    fixture->context.identity.alone = false; /* then its replies must show it */
    if (redis_connection_takes(fixture->connection) &&
        redis_connection_fixture_send(fixture,
                                      (const struct slice[]){SLICE("SET"), SLICE("a"), SLICE("b")},
                                      3, on_connection_fixture_reply))
        redis_connection_fixture_await_answers(fixture);
    assert_int_not_equal(redis_connection_problem(fixture->connection), REDIS_FINE);
}

static void full_server_is_detected_and_used_again_later(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture, REDIS_OPTIONS("--maxmemory-policy", "noeviction"));
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_server_expect(&fixture->server, "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(strncmp(redis_connection_fixture_run(fixture, "SET a b"), "OOM", 3), 0);
    assert_int_equal(redis_connection_problem(fixture->connection), REDIS_OUT_OF_MEMORY);
    assert_string_equal(redis_connection_fixture_run(fixture, "ECHO reads-go-on"), "reads-go-on");
    worker_loop_run(&fixture->worker, 1200);
    assert_int_equal(redis_connection_problem(fixture->connection), REDIS_OUT_OF_MEMORY);
    redis_server_expect(&fixture->server, "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    assert_string_equal(redis_connection_fixture_run(fixture, "SET a b"), "OK");
}

static void loading_server_is_reported_then_used(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open(fixture,
                                  REDIS_OPTIONS("--enable-debug-command", "yes", "--key-load-delay",
                                                "20000", "--loading-process-events-interval-bytes",
                                                "1024", "--rdbcompression", "no"));
    redis_server_expect(&fixture->server, "OK", "DEBUG", "POPULATE", "100", "key", "100", NULL);
    redis_server_expect(&fixture->server, "OK", "SAVE", NULL);
    redis_server_kill(&fixture->server);
    redis_server_restart(&fixture->server);
    redis_connection_fixture_await_problem(fixture, REDIS_LOADING,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE,
                                           2 * REDIS_CONNECTION_FIXTURE_SOON_MS);
}

static void maxclients_is_reported_as_crowded(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_server_start(&fixture->server, REDIS_OPTIONS("--maxclients", "1"));
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    struct redis_connection *first = fixture->connection;
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port);
    redis_connection_fixture_await_problem(fixture, REDIS_CROWDED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_connection_end(&first);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
}

static void closed_port_and_unknown_name_are_reported(void **state)
{
    struct redis_connection_fixture *fixture = *state;
    redis_connection_fixture_open_at(fixture, "127.0.0.1", 1);
    redis_connection_fixture_await_problem(fixture, REDIS_UNREACHABLE,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_connection_end(&fixture->connection);
    redis_connection_fixture_open_at(fixture, "no.such.host.invalid", 1);
    redis_connection_fixture_await_problem(fixture, REDIS_NAME_UNKNOWN,
                                           2 * REDIS_CONNECTION_FIXTURE_SOON_MS);
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

static void tls_requires_a_trusted_certificate(void **state)
{
    struct redis_connection_fixture *fixture = *state;
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
    fixture->context.tls = tls_context_load_client(NULL, error);
    assert_non_null(fixture->context.tls);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", port);
    redis_connection_fixture_await_problem(fixture, REDIS_DISTRUSTED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_connection_end(&fixture->connection);
    worker_loop_run(&fixture->worker, 50);
    tls_context_drop(&fixture->context.tls);
    fixture->context.tls = tls_context_load_client(cert, error);
    assert_non_null(fixture->context.tls);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", port);
    redis_connection_fixture_await_problem(fixture, REDIS_FINE, REDIS_CONNECTION_FIXTURE_SOON_MS);
    for (int i = 0; i < 5000; i++)
        assert_true(redis_connection_fixture_echo(fixture));
    redis_connection_fixture_await_answers(fixture);
    assert_int_equal(fixture->without_reply + fixture->in_disorder, 0);
    redis_connection_end(&fixture->connection);
    redis_connection_fixture_open_at(fixture, "localhost",
                                     port); /* the certificate is not for this name */
    redis_connection_fixture_await_problem(fixture, REDIS_DISTRUSTED,
                                           REDIS_CONNECTION_FIXTURE_SOON_MS);
    redis_connection_end(&fixture->connection);
    redis_connection_fixture_open_at(fixture, "127.0.0.1", fixture->server.port); /* no TLS there */
    redis_connection_fixture_await_problem(fixture, REDIS_SILENT, REDIS_CONNECTION_FIXTURE_SOON_MS);
    unlink(cert);
    unlink(key);
    rmdir(folder);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, redis_connection_fixture_set_up,                         \
                                    redis_connection_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(login_is_sent_and_its_refusal_reported),
        TEST(password_is_not_logged),
        TEST(server_without_hello_is_used_in_version_2),
        TEST(replica_is_refused),
        TEST(full_server_is_detected_and_used_again_later),
        TEST(loading_server_is_reported_then_used),
        TEST(maxclients_is_reported_as_crowded),
        TEST(closed_port_and_unknown_name_are_reported),
        TEST(tls_requires_a_trusted_certificate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
