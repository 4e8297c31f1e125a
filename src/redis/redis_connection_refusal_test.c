/* Servers that a link must not use, or not yet, and what it says of each. */
#include "redis/redis_connection.h"

#include "net/tls.h"
#include "support/link_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void logins_are_given_and_their_refusal_is_told_apart(void **state)
{
    struct link_stage *stage = *state;
    stage->links.identity.password = "wrong";
    redis_server_start(&stage->server, REDIS_OPTIONS("--requirepass", "secret"));
    stage->server.password = "secret";
    redis_server_expect(&stage->server, "OK", "ACL", "SETUSER", "app", "on", ">other", "~*", "&*",
                        "+@all", NULL);
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
    link_stage_await_problem(stage, REDIS_LOGIN_REFUSED, LINK_STAGE_SOON_MS);
    assert_false(link_stage_echo(stage));
    stage->links.identity.password = "secret";
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    assert_string_equal(link_stage_ask(stage, "ACL WHOAMI"), "default");
    redis_connection_end(&stage->link);
    stage->links.identity.user = "app";
    stage->links.identity.password = "other";
    stage->links.identity.database = 3;
    link_stage_open_at(stage, "localhost", stage->server.port);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    assert_string_equal(link_stage_ask(stage, "ACL WHOAMI"), "app");
    link_stage_ask(stage, "CLIENT INFO");
    assert_string_equal(link_stage_ask(stage, "SET in-three x"), "OK");
    redis_server_expect(&stage->server, "0", "EXISTS", "in-three", NULL);
    stage->links.identity.password = "";
    redis_connection_end(&stage->link);
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
    link_stage_await_problem(stage, REDIS_LOGIN_REFUSED, LINK_STAGE_SOON_MS);
}

/* A server repeats what it does not know, arguments and all. */
static void a_password_does_not_come_back_into_the_log(void **state)
{
    struct link_stage *stage = *state;
    char text[4096] = "";
    FILE *log = tmpfile();
    int kept = dup(STDERR_FILENO);
    redis_server_start(&stage->server, REDIS_OPTIONS("--rename-command", "HELLO", "",
                                                     "--rename-command", "AUTH", ""));
    stage->links.identity.password = "hunter2";
    dup2(fileno(log), STDERR_FILENO);
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
    link_stage_await_problem(stage, REDIS_LOGIN_REFUSED, LINK_STAGE_SOON_MS);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(log);
    assert_int_not_equal(fread(text, 1, sizeof(text) - 1, log), 0);
    fclose(log);
    assert_non_null(strstr(text, "login_refused"));
    assert_null(strstr(text, "hunter2"));
}

static void a_server_without_hello_is_spoken_to_in_version_2(void **state)
{
    struct link_stage *stage = *state;
    stage->links.identity.password = "secret";
    stage->links.identity.database = 2;
    link_stage_open(
        stage, REDIS_OPTIONS("--requirepass", "secret", "--rename-command", "HELLO", "GOODBYE"));
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    assert_string_equal(link_stage_ask(stage, "CLIENT GETNAME"), "rollcall");
    assert_string_equal(link_stage_ask(stage, "SET a b"), "OK");
    link_stage_ask(stage, "CLIENT INFO");
    assert_non_null(strstr(stage->last, "name=rollcall"));
}

static void a_replica_is_refused(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_OPTIONS("--replicaof", "127.0.0.1 1"));
    link_stage_await_problem(stage, REDIS_READ_ONLY, LINK_STAGE_SOON_MS);
    redis_server_expect(&stage->server, "OK", "REPLICAOF", "NO", "ONE", NULL);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    redis_server_expect(&stage->server, "OK", "REPLICAOF", "127.0.0.1", "1", NULL);
    stage->links.identity.alone = false; /* by what it answers, then */
    if (redis_connection_takes(stage->link) &&
        link_stage_send(stage, (const struct slice[]){SLICE("SET"), SLICE("a"), SLICE("b")}, 3,
                        link_stage_take))
        link_stage_await_answers(stage);
    assert_int_not_equal(redis_connection_problem(stage->link), REDIS_FINE);
}

static void a_full_server_is_noticed_and_forgiven(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_OPTIONS("--maxmemory-policy", "noeviction"));
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    redis_server_expect(&stage->server, "OK", "CONFIG", "SET", "maxmemory", "1", NULL);
    assert_int_equal(strncmp(link_stage_ask(stage, "SET a b"), "OOM", 3), 0);
    assert_int_equal(redis_connection_problem(stage->link), REDIS_OUT_OF_MEMORY);
    assert_string_equal(link_stage_ask(stage, "ECHO reads-go-on"), "reads-go-on");
    worker_loop_run(&stage->worker, 1200);
    assert_int_equal(redis_connection_problem(stage->link), REDIS_OUT_OF_MEMORY);
    redis_server_expect(&stage->server, "OK", "CONFIG", "SET", "maxmemory", "0", NULL);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    assert_string_equal(link_stage_ask(stage, "SET a b"), "OK");
}

static void a_server_that_loads_is_waited_for(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open(stage, REDIS_OPTIONS("--enable-debug-command", "yes", "--key-load-delay",
                                         "20000", "--loading-process-events-interval-bytes", "1024",
                                         "--rdbcompression", "no"));
    redis_server_expect(&stage->server, "OK", "DEBUG", "POPULATE", "100", "key", "100", NULL);
    redis_server_expect(&stage->server, "OK", "SAVE", NULL);
    redis_server_kill(&stage->server);
    redis_server_restart(&stage->server);
    link_stage_await_problem(stage, REDIS_LOADING, LINK_STAGE_SOON_MS);
    link_stage_await_problem(stage, REDIS_FINE, 2 * LINK_STAGE_SOON_MS);
}

static void too_many_clients_are_told_apart(void **state)
{
    struct link_stage *stage = *state;
    redis_server_start(&stage->server, REDIS_OPTIONS("--maxclients", "1"));
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    struct redis_connection *first = stage->link;
    link_stage_open_at(stage, "127.0.0.1", stage->server.port);
    link_stage_await_problem(stage, REDIS_CROWDED, LINK_STAGE_SOON_MS);
    redis_connection_end(&first);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
}

static void what_is_not_redis_is_told_apart(void **state)
{
    struct link_stage *stage = *state;
    link_stage_open_at(stage, "127.0.0.1", 1);
    link_stage_await_problem(stage, REDIS_UNREACHABLE, LINK_STAGE_SOON_MS);
    redis_connection_end(&stage->link);
    link_stage_open_at(stage, "no.such.host.invalid", 1);
    link_stage_await_problem(stage, REDIS_NAME_UNKNOWN, 2 * LINK_STAGE_SOON_MS);
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
    struct link_stage *stage = *state;
    char error[TLS_ERROR_TEXT_MAX];
    char folder[] = P_tmpdir "/rollcall-tls-XXXXXX";
    char cert[64];
    char key[64];
    char tls_port[8];
    assert_non_null(mkdtemp(folder));
    snprintf(cert, sizeof(cert), "%s/cert.pem", folder);
    snprintf(key, sizeof(key), "%s/key.pem", folder);
    make_certificate(cert, key);
    redis_server_start(&stage->server, REDIS_DEFAULTS);
    uint16_t port = stage->server.port;
    redis_server_stop(&stage->server); /* its port is free, and is not its TLS port below */
    snprintf(tls_port, sizeof(tls_port), "%u", port);
    redis_server_start(&stage->server,
                       REDIS_OPTIONS("--tls-port", tls_port, "--tls-cert-file", cert,
                                     "--tls-key-file", key, "--tls-ca-cert-file", cert,
                                     "--tls-auth-clients", "no"));
    stage->links.tls = tls_context_load_client(NULL, error);
    assert_non_null(stage->links.tls);
    link_stage_open_at(stage, "127.0.0.1", port);
    link_stage_await_problem(stage, REDIS_DISTRUSTED, LINK_STAGE_SOON_MS);
    redis_connection_end(&stage->link);
    worker_loop_run(&stage->worker, 50);
    tls_context_drop(&stage->links.tls);
    stage->links.tls = tls_context_load_client(cert, error);
    assert_non_null(stage->links.tls);
    link_stage_open_at(stage, "127.0.0.1", port);
    link_stage_await_problem(stage, REDIS_FINE, LINK_STAGE_SOON_MS);
    for (int i = 0; i < 5000; i++)
        assert_true(link_stage_echo(stage));
    link_stage_await_answers(stage);
    assert_int_equal(stage->without_reply + stage->in_disorder, 0);
    redis_connection_end(&stage->link);
    link_stage_open_at(stage, "localhost", port); /* for which the certificate is not */
    link_stage_await_problem(stage, REDIS_DISTRUSTED, LINK_STAGE_SOON_MS);
    redis_connection_end(&stage->link);
    link_stage_open_at(stage, "127.0.0.1", stage->server.port); /* no TLS there */
    link_stage_await_problem(stage, REDIS_SILENT, LINK_STAGE_SOON_MS);
    unlink(cert);
    unlink(key);
    rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, link_stage_set_up, link_stage_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logins_are_given_and_their_refusal_is_told_apart),
        TEST(a_password_does_not_come_back_into_the_log),
        TEST(a_server_without_hello_is_spoken_to_in_version_2),
        TEST(a_replica_is_refused),
        TEST(a_full_server_is_noticed_and_forgiven),
        TEST(a_server_that_loads_is_waited_for),
        TEST(too_many_clients_are_told_apart),
        TEST(what_is_not_redis_is_told_apart),
        TEST(tls_is_spoken_with_those_we_trust),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
