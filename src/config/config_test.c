/* Tests the sources of a configuration and their precedence. */
#include "config/config_testing.h"

static char *const environment[] = {(char *)"PATH=/bin", (char *)"ROLLCALL_GATEWAY__WORKERS=20",
                                    (char *)"ROLLCALL_PRESENCE__IDLE_SECONDS=20.5", NULL};

static const char *const file_of_tens = "gateway.workers: 10\n"
                                        "presence.idle_seconds: 10\n"
                                        "presence.max_subscriptions: 10\n";

static void unset_values_have_their_defaults(void **state)
{
    (void)state;
    struct config config;
    expect_loaded(&config, &(struct config_inputs){.default_node_id = "host-1"});
    assert_string_equal(config.gateway.listen, "127.0.0.1:8080");
    assert_string_equal(config.gateway.node_id, "host-1");
    assert_string_equal(config.state.url, "memory");
    assert_string_equal(config.ledger.url, "");
    assert_string_equal(config.data_dir, "./rollcall-data");
    assert_int_equal(config.gateway.max_lifetime_ms, 86400000);
    assert_int_equal(config.gateway.backpressure.outbound.max_buffer_messages, 1000);
    assert_int_equal(config.gateway.timeouts.heartbeat_interval_ms, 5000);
    assert_int_equal(config.presence.reap_interval_ms, 500);
    assert_int_equal(config.log.level, LOG_LEVEL_INFO);
    assert_int_equal(config.gateway.allowed_origins.count, 0);
    assert_false(config.dev);
    config_free(&config);
    assert_null(config.gateway.listen);
    config_free(&config);
}

/* Loads the file (values in the tens), the environment (twenties), and that many sets and flags. */
static uint32_t workers_with(bool has_file, bool has_environment, size_t sets, size_t flags)
{
    static const char *const assignments[] = {"gateway.workers=30", "gateway.workers=31"};
    static const struct config_flag given[] = {{"--workers", "gateway.workers", "40"},
                                               {"--workers", "gateway.workers", "41"}};
    struct config config;
    config_testing_write_file(file_of_tens);
    expect_loaded(&config,
                  &(struct config_inputs){.file = has_file ? CONFIG_TESTING_FILE : NULL,
                                          .environment = has_environment ? environment : NULL,
                                          .assignments = assignments,
                                          .assignment_count = sets,
                                          .flags = given,
                                          .flag_count = flags});
    uint32_t workers = config.gateway.workers;
    config_free(&config);
    return workers;
}

static void source_of_higher_precedence_wins(void **state)
{
    (void)state;
    assert_int_equal(workers_with(false, false, 0, 0), 0);
    assert_int_equal(workers_with(true, false, 0, 0), 10);
    assert_int_equal(workers_with(true, true, 0, 0), 20);
    assert_int_equal(workers_with(true, true, 1, 0), 30);
    assert_int_equal(workers_with(true, true, 2, 0), 31);
    assert_int_equal(workers_with(true, true, 2, 1), 40);
    assert_int_equal(workers_with(true, true, 2, 2), 41);
    assert_int_equal(workers_with(false, false, 0, 1), 40);
}

static void source_keeps_values_it_does_not_name(void **state)
{
    (void)state;
    struct config config;
    config_testing_write_file(file_of_tens);
    expect_loaded(&config,
                  &(struct config_inputs){.file = CONFIG_TESTING_FILE, .environment = environment});
    assert_int_equal(config.presence.idle_ms, 20500);
    assert_int_equal(config.presence.max_subscriptions, 10);
    config_free(&config);
}

static void overridden_wrong_value_is_an_error(void **state)
{
    (void)state;
    static const char *const assignments[] = {"gateway.workers=30"};
    config_testing_write_file("gateway.workers: many\n");
    expect_refused(&(struct config_inputs){.file = CONFIG_TESTING_FILE,
                                           .assignments = assignments,
                                           .assignment_count = 1},
                   "rollcall.yaml:1: gateway.workers cannot be \"many\"; expected an integer from "
                   "0 to 256");
}

static void expect_variable_refused(const char *variable, const char *text)
{
    char *const variables[] = {(char *)variable, NULL};
    expect_refused(&(struct config_inputs){.environment = variables}, text);
}

static void error_in_the_environment_names_the_variable(void **state)
{
    (void)state;
    expect_variable_refused("ROLLCALL_GATEWAY__WORKERS=many",
                            "ROLLCALL_GATEWAY__WORKERS: gateway.workers cannot be \"many\"; "
                            "expected an integer from 0 to 256");
    expect_variable_refused("ROLLCALL_GATEWAY__WORKER=1",
                            "ROLLCALL_GATEWAY__WORKER: there is no setting \"gateway.worker\"; "
                            "did you mean ROLLCALL_GATEWAY__WORKERS?");
    expect_variable_refused("ROLLCALL_GATEWAY_WORKERS=1",
                            "ROLLCALL_GATEWAY_WORKERS: there is no setting \"gateway_workers\"; "
                            "did you mean ROLLCALL_GATEWAY__WORKERS?");
    expect_variable_refused("ROLLCALL_DVE=true", "ROLLCALL_DVE: there is no setting \"dve\"; did "
                                                 "you mean ROLLCALL_DEV?");
    expect_variable_refused("ROLLCALL_LISTEN=:80",
                            "ROLLCALL_LISTEN: there is no setting \"listen\"; did you mean "
                            "ROLLCALL_GATEWAY__LISTEN?");
    expect_variable_refused("ROLLCALL_GATEWAY=1",
                            "ROLLCALL_GATEWAY: gateway is a section; expected one of its settings");
    expect_variable_refused(
        "ROLLCALL_BIN__PATH=x",
        "ROLLCALL_BIN__PATH: there is no setting \"bin.path\"; expected one that rollcall serve --config-reference lists");
    expect_variable_refused("ROLLCALL_PEER__SECRET=a\nb",
                            "ROLLCALL_PEER__SECRET: peer.secret has a wrong value (not shown); "
                            "expected UTF-8 text without control characters");
}

static void variables_without_our_prefix_are_ignored(void **state)
{
    (void)state;
    struct config config;
    char *const variables[] = {(char *)"ROLLCALLX=1",
                               (char *)"XROLLCALL_DEV=true",
                               (char *)"NO_EQUALS_SIGN",
                               (char *)"ROLLCALL_PEER__PEERS=a:1,b:2",
                               (char *)"ROLLCALL_AUTH__ISSUER=a=b",
                               NULL};
    expect_loaded(&config, &(struct config_inputs){.environment = variables});
    assert_int_equal(config.peer.peers.count, 2);
    assert_string_equal(config.auth.issuer, "a=b");
    assert_false(config.dev);
    config_free(&config);
}

/* Variables with our prefix that a test harness, Kubernetes or a shell sets. */
static void variable_unlike_any_setting_is_ignored_with_a_warning(void **state)
{
    (void)state;
    struct config config;
    struct config_error warnings[CONFIG_WARNINGS_MAX];
    char *const variables[] = {(char *)"ROLLCALL_BIN=build/rollcall",
                               (char *)"ROLLCALL_DEV=true",
                               (char *)"ROLLCALL_SERVICE_HOST=10.0.0.1",
                               (char *)"ROLLCALL_PORT_8080_TCP_ADDR=10.0.0.1",
                               (char *)"ROLLCALL_dev=true",
                               (char *)"ROLLCALL_=1",
                               (char *)"PATH=/bin",
                               NULL};
    expect_loaded(&config, &(struct config_inputs){.environment = variables});
    assert_true(config.dev);
    config_free(&config);
    assert_int_equal(config_environment_warnings(variables, warnings), 5);
    assert_string_equal(warnings[0].text, "ROLLCALL_BIN names no setting and is ignored");
    assert_string_equal(warnings[1].text, "ROLLCALL_SERVICE_HOST names no setting and is ignored");
    assert_string_equal(warnings[4].text, "ROLLCALL_ names no setting and is ignored");
    assert_int_equal(config_environment_warnings(NULL, warnings), 0);
}

static void number_of_warnings_is_bounded(void **state)
{
    (void)state;
    struct config_error warnings[CONFIG_WARNINGS_MAX];
    char *variables[CONFIG_WARNINGS_MAX + 2] = {NULL};
    for (size_t i = 0; i <= CONFIG_WARNINGS_MAX; i++)
        variables[i] = (char *)"ROLLCALL_BIN=x";
    assert_int_equal(config_environment_warnings(variables, warnings), CONFIG_WARNINGS_MAX);
}

static void error_in_set_names_it(void **state)
{
    (void)state;
    expect_sets_refused(SETS("gateway.workers=x"),
                        "--set: gateway.workers cannot be \"x\"; expected an integer from 0 to "
                        "256");
    expect_sets_refused(SETS("gateway.workers"),
                        "--set: gateway.workers has no value; expected gateway.workers=VALUE");
    expect_sets_refused(SETS("gateway.wokers=1"),
                        "--set: there is no setting \"gateway.wokers\"; did you mean "
                        "gateway.workers?");
    expect_sets_refused(SETS("gateway=1"),
                        "--set: gateway is a section; expected one of its settings");
    expect_sets_refused(
        SETS(""),
        "--set: there is no setting \"\"; expected one that rollcall serve --config-reference lists");
}

static void error_in_a_flag_names_it(void **state)
{
    (void)state;
    static const struct config_flag flags[] = {{"--listen", "gateway.listen", "8080"}};
    expect_refused(&(struct config_inputs){.flags = flags, .flag_count = 1},
                   "--listen: gateway.listen cannot be \"8080\"; expected HOST:PORT or "
                   "[IPV6]:PORT");
}

static void set_replaces_a_list(void **state)
{
    (void)state;
    struct config config;
    static const char *const assignments[] = {"peer.peers=c:3"};
    config_testing_write_file("peer.peers: [a:1, b:2]\n");
    expect_loaded(&config, &(struct config_inputs){.file = CONFIG_TESTING_FILE,
                                                   .assignments = assignments,
                                                   .assignment_count = 1});
    assert_int_equal(config.peer.peers.count, 1);
    assert_string_equal(config.peer.peers.items[0], "c:3");
    config_free(&config);
    expect_sets_loaded(&config, SETS("peer.peers=a:1", "peer.peers="));
    assert_int_equal(config.peer.peers.count, 0);
    config_free(&config);
}

static void long_value_is_cut_in_messages(void **state)
{
    (void)state;
    char set[2100] = "gateway.workers=";
    memset(set + strlen(set), 'x', 2000);
    char expected[256] = "--set: gateway.workers cannot be \"";
    memset(expected + strlen(expected), 'x', 80);
    strcat(expected, "…\"; expected an integer from 0 to 256");
    expect_sets_refused(SETS(set), expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unset_values_have_their_defaults),
        cmocka_unit_test(source_of_higher_precedence_wins),
        cmocka_unit_test(source_keeps_values_it_does_not_name),
        cmocka_unit_test(overridden_wrong_value_is_an_error),
        cmocka_unit_test(error_in_the_environment_names_the_variable),
        cmocka_unit_test(variables_without_our_prefix_are_ignored),
        cmocka_unit_test(variable_unlike_any_setting_is_ignored_with_a_warning),
        cmocka_unit_test(number_of_warnings_is_bounded),
        cmocka_unit_test(error_in_set_names_it),
        cmocka_unit_test(error_in_a_flag_names_it),
        cmocka_unit_test(set_replaces_a_list),
        cmocka_unit_test(long_value_is_cut_in_messages),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
