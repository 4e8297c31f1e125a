#include "app/serve_options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGUMENTS_MAX = 24 };

/* One run of a command, and what it printed. */
struct run {
    enum serve_action action;
    struct config config;
    char *out;
    char *err;
};

/* Parses a command line whose arguments are separated by single spaces. */
static struct run run_with(const char *arguments, char *const *environment)
{
    struct run run = {0};
    size_t out_len, err_len;
    char *line = strdup(arguments), *argv[ARGUMENTS_MAX];
    int argc = 0;
    for (char *argument = strtok(line, " "); argument && argc < ARGUMENTS_MAX;
         argument = strtok(NULL, " "))
        argv[argc++] = argument;
    struct serve_surroundings surroundings = {.out = open_memstream(&run.out, &out_len),
                                              .err = open_memstream(&run.err, &err_len),
                                              .environment = environment,
                                              .default_node_id = "host-1"};
    run.action = serve_options_parse(&surroundings, argc, argv, &run.config);
    fclose(surroundings.out);
    fclose(surroundings.err);
    free(line);
    return run;
}

static void end_run(struct run *run)
{
    config_free(&run->config);
    free(run->out);
    free(run->err);
}

static struct run expect_running(const char *arguments)
{
    struct run run = run_with(arguments, NULL);
    if (run.action != SERVE_RUN)
        fail_msg("%s: %s", arguments, run.err);
    assert_string_equal(run.out, "");
    return run;
}

static void expect_error(const char *arguments, const char *text)
{
    struct run run = run_with(arguments, NULL);
    assert_int_equal(run.action, SERVE_EXIT_ERROR);
    assert_string_equal(run.err, text);
    assert_string_equal(run.out, "");
    assert_null(run.config.gateway.listen);
    end_run(&run);
}

static void every_flag_sets_its_setting(void **state)
{
    (void)state;
    struct run run =
        expect_running("serve --listen 0.0.0.0:9 --node-id gw-001 --workers 3 "
                       "--state redis://h:6379/1 --ledger sqlite:/x --feed kafka://k:1 "
                       "--peer-listen 0.0.0.0:7 --peers a:1,b:2 --jwt-keys k.pem "
                       "--data-dir /d --set peer.secret=s");
    const struct config *config = &run.config;
    assert_string_equal(config->gateway.listen, "0.0.0.0:9");
    assert_string_equal(config->gateway.node_id, "gw-001");
    assert_int_equal(config->gateway.workers, 3);
    assert_string_equal(config->state.url, "redis://h:6379/1");
    assert_string_equal(config->ledger.url, "sqlite:/x");
    assert_string_equal(config->feed.url, "kafka://k:1");
    assert_string_equal(config->peer.listen, "0.0.0.0:7");
    assert_int_equal(config->peer.peers.count, 2);
    assert_string_equal(config->auth.keys_file, "k.pem");
    assert_string_equal(config->data_dir, "/d");
    assert_string_equal(config->peer.secret, "s");
    assert_false(config->dev);
    assert_string_equal(run.err, "");
    end_run(&run);
}

static void values_may_follow_an_equals_sign(void **state)
{
    (void)state;
    struct run run = expect_running("serve --dev --listen=127.0.0.1:0 --set=auth.issuer=a=b "
                                    "--node-id=");
    assert_string_equal(run.config.gateway.listen, "127.0.0.1:0");
    assert_string_equal(run.config.auth.issuer, "a=b");
    assert_string_equal(run.config.gateway.node_id, "host-1");
    assert_true(run.config.dev);
    assert_true(run.config.auth.dev);
    end_run(&run);
}

static void flag_wins_over_set_in_any_order(void **state)
{
    (void)state;
    struct run run =
        expect_running("serve --dev --workers 2 --set gateway.workers=9 "
                       "--set presence.idle_seconds=1 --set presence.idle_seconds=0.5");
    assert_int_equal(run.config.gateway.workers, 2);
    assert_int_equal(run.config.presence.idle_ms, 500);
    end_run(&run);
}

static void serve_without_keys_is_refused(void **state)
{
    (void)state;
    expect_error("serve", "rollcall: no keys to verify tokens with: give --jwt-keys FILE "
                          "(auth.keys_file) or auth.jwks_url, or --dev on a laptop\n");
    char *const variables[] = {(char *)"ROLLCALL_AUTH__KEYS_FILE=k", NULL};
    struct run run = run_with("serve", variables);
    assert_int_equal(run.action, SERVE_RUN);
    end_run(&run);
}

static void dev_on_a_public_address_is_refused(void **state)
{
    (void)state;
    expect_error("serve --dev --listen 0.0.0.0:80",
                 "rollcall: gateway.listen (\"0.0.0.0:80\", flag) must be a loopback address such "
                 "as 127.0.0.1:8080, because dev (--dev) is on\n");
}

static void wrong_arguments_are_explained(void **state)
{
    (void)state;
    expect_error("serve --dev --lsiten x",
                 "rollcall: --lsiten is not an option of serve; did you mean "
                 "--listen?\nTry 'rollcall serve --help'.\n");
    expect_error("serve here",
                 "rollcall: here is not an option of serve\nTry 'rollcall serve --help'.\n");
    expect_error("serve --dev --listen", "rollcall: --listen needs a value: HOST:PORT\n");
    expect_error("serve --dev=yes", "rollcall: --dev takes no value\n");
    expect_error("serve --dev --workers many", "rollcall: --workers: gateway.workers cannot be "
                                               "\"many\"; expected an integer from 0 to 256\n");
    expect_error("serve --dev --config /nonexistent/x.yaml",
                 "rollcall: /nonexistent/x.yaml: cannot be opened: No such file or directory\n");
    expect_error(
        "serve --dev --set presence.idle=1",
        "rollcall: --set: there is no setting \"presence.idle\"; expected one that rollcall serve --config-reference lists\n");
}

static void suspicious_settings_give_warnings(void **state)
{
    (void)state;
    struct run run = expect_running("serve --dev --peers a:1");
    assert_string_equal(run.err, "rollcall: warning: peer.secret is empty: peer links are off\n");
    end_run(&run);
    char *const variables[] = {(char *)"ROLLCALL_BIN=x", NULL};
    run = run_with("serve --dev", variables);
    assert_int_equal(run.action, SERVE_RUN);
    assert_string_equal(run.err,
                        "rollcall: warning: ROLLCALL_BIN names no setting and is ignored\n");
    end_run(&run);
}

static void expect_printed(const char *arguments, const char *part)
{
    struct run run = run_with(arguments, NULL);
    assert_int_equal(run.action, SERVE_EXIT_OK);
    if (!strstr(run.out, part))
        fail_msg("%s: %s", arguments, run.out);
    assert_string_equal(run.err, "");
    end_run(&run);
}

static void print_options_print_and_exit(void **state)
{
    (void)state;
    expect_printed("serve --print-config --workers 2", "\n  workers: 2  # flag\n");
    expect_printed("serve --config-reference", "# Configuration\n");
    expect_printed("serve --help", "\n  --listen HOST:PORT         serve clients here\n");
    expect_printed("serve --help --workers x", "Usage: rollcall serve");
    expect_printed("ledger --help", "Usage: rollcall ledger");
    expect_error("serve --print-config --workers x",
                 "rollcall: --workers: gateway.workers cannot be \"x\"; expected an integer from "
                 "0 to 256\n");
}

static void help_lists_the_options_of_the_command(void **state)
{
    (void)state;
    struct run run = run_with("ledger --help", NULL);
    assert_non_null(strstr(run.out, "--ledger"));
    assert_null(strstr(run.out, "--jwt-keys"));
    end_run(&run);
    run = run_with("serve --help", NULL);
    assert_non_null(strstr(run.out, "--jwt-keys"));
    assert_non_null(strstr(run.out, "--peers HOST:PORT,..."));
    assert_non_null(strstr(run.out, "redis-cluster://"));
    assert_null(strstr(run.out, "--config-reference"));
    end_run(&run);
}

static void usage_lists_the_commands(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    serve_options_write_usage(out);
    fclose(out);
    assert_non_null(strstr(text, "\n  serve "));
    assert_non_null(strstr(text, "\n  token USER "));
    assert_non_null(strstr(text, "\n  ledger "));
    assert_non_null(strstr(text, "\n  check "));
    free(text);
}

static void fanout_needs_what_it_shares_with_the_gateways(void **state)
{
    (void)state;
    struct run run = expect_running("fanout --state redis://r:6379 --feed kafka://k:9092 "
                                    "--ledger remote://l:7100 --workers 3");
    assert_int_equal(run.config.gateway.workers, 3);
    end_run(&run);
    expect_error("fanout --state redis://r:6379 --ledger remote://l:7100",
                 "rollcall: the local feed is consumed by the gateways: fanout needs "
                 "--feed kafka://HOST:PORT\n");
    expect_error("fanout --feed kafka://k:9092 --ledger remote://l:7100",
                 "rollcall: a state store in memory belongs to one process: fanout needs the "
                 "gateways' --state redis://HOST:PORT\n");
    expect_error("fanout --feed kafka://k:9092 --state redis://r:6379 --ledger sqlite:x",
                 "rollcall: a SQLite file belongs to one process: fanout needs the gateways' "
                 "ledger, --ledger remote://HOST:PORT or dynamodb://REGION\n");
    expect_error("fanout --listen 127.0.0.1:0", "rollcall: --listen is not an option of fanout\n"
                                                "Try 'rollcall fanout --help'.\n");
}

static void ledger_without_address_or_secret_is_refused(void **state)
{
    (void)state;
    struct run run = expect_running("ledger --peer-listen 127.0.0.1:0 --ledger sqlite:x "
                                    "--set peer.secret=s");
    assert_string_equal(run.config.peer.listen, "127.0.0.1:0");
    end_run(&run);
    expect_error("ledger --ledger sqlite:x --set peer.secret=s",
                 "rollcall: ledger needs --peer-listen HOST:PORT (peer.listen)\n");
    expect_error("ledger --workers 1", "rollcall: --workers is not an option of ledger\n"
                                       "Try 'rollcall ledger --help'.\n");
    run = run_with("ledger --peer-listen 127.0.0.1:0", NULL);
    assert_int_equal(run.action, SERVE_EXIT_ERROR);
    assert_non_null(strstr(run.err, "ledger needs peer.secret, the same as its gateways have\n"));
    end_run(&run);
}

enum { RUN_STATUS = 7 };

static int check_default_node_id(const struct config *config)
{
    assert_non_null(strrchr(config->gateway.node_id, '-'));
    return RUN_STATUS;
}

static void default_node_id_is_host_and_pid(void **state)
{
    (void)state;
    char *argv[] = {(char *)"serve", (char *)"--dev", NULL};
    for (size_t i = 0; environ && environ[i]; i++)
        if (strncmp(environ[i], "ROLLCALL_", 9) == 0)
            skip();
    assert_int_equal(serve_options_run(2, argv, check_default_node_id), RUN_STATUS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flag_sets_its_setting),
        cmocka_unit_test(values_may_follow_an_equals_sign),
        cmocka_unit_test(flag_wins_over_set_in_any_order),
        cmocka_unit_test(serve_without_keys_is_refused),
        cmocka_unit_test(dev_on_a_public_address_is_refused),
        cmocka_unit_test(wrong_arguments_are_explained),
        cmocka_unit_test(suspicious_settings_give_warnings),
        cmocka_unit_test(print_options_print_and_exit),
        cmocka_unit_test(help_lists_the_options_of_the_command),
        cmocka_unit_test(usage_lists_the_commands),
        cmocka_unit_test(fanout_needs_what_it_shares_with_the_gateways),
        cmocka_unit_test(ledger_without_address_or_secret_is_refused),
        cmocka_unit_test(default_node_id_is_host_and_pid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
