/* Tests the YAML file: its syntax, and that every error names the right line. */
#include "config/config_testing.h"

#define NO_SETTING(name)                                                                           \
    "there is no setting \"" name "\"; expected one that rollcall serve --config-reference lists"

static void nested_and_dotted_names_are_equivalent(void **state)
{
    (void)state;
    struct config config;
    expect_file_loaded(&config, "# a comment\n"
                                "gateway:\n"
                                "  listen: 0.0.0.0:9000\n"
                                "  backpressure.inbound:\n"
                                "    max_queue_depth: 7\n"
                                "  timeouts: {durability_rpc_seconds: 0.25}\n"
                                "gateway.workers: 3\n"
                                "presence.idle_seconds: 1.5\n");
    assert_string_equal(config.gateway.listen, "0.0.0.0:9000");
    assert_int_equal(config.gateway.backpressure.inbound.max_queue_depth, 7);
    assert_int_equal(config.gateway.timeouts.durability_rpc_ms, 250);
    assert_int_equal(config.gateway.workers, 3);
    assert_int_equal(config.presence.idle_ms, 1500);
    config_free(&config);
}

static void empty_files_documents_and_sections_are_valid(void **state)
{
    (void)state;
    static const char *const files[] = {"",
                                        "# nothing\n",
                                        "---\n",
                                        "{}\n",
                                        "gateway:\n",
                                        "gateway: {}\npresence: ~\n",
                                        "---\ndev: false\n...\n"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct config config;
        expect_file_loaded(&config, files[i]);
        assert_int_equal(config.gateway.workers, 0);
        config_free(&config);
    }
}

static void list_has_three_spellings(void **state)
{
    (void)state;
    static const char *const files[] = {"peer:\n  peers:\n    - a:1\n    - b:2\n",
                                        "peer.peers: [a:1, \"b:2\"]\n", "peer.peers: a:1,b:2\n"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct config config;
        expect_file_loaded(&config, files[i]);
        assert_int_equal(config.peer.peers.count, 2);
        assert_string_equal(config.peer.peers.items[0], "a:1");
        assert_string_equal(config.peer.peers.items[1], "b:2");
        config_free(&config);
    }
}

static void quotes_matter_for_empty_values_only(void **state)
{
    (void)state;
    struct config config;
    expect_file_loaded(&config, "gateway.workers: \"2\"\nauth.issuer: ''\nauth.audience: 'null'\n");
    assert_int_equal(config.gateway.workers, 2);
    assert_string_equal(config.auth.issuer, "");
    assert_string_equal(config.auth.audience, "null");
    config_free(&config);
    expect_file_refused("dev: false\nauth:\n  issuer:\n",
                        "rollcall.yaml:3: auth.issuer has no value");
    expect_file_refused("auth.issuer: null\n", "rollcall.yaml:1: auth.issuer has no value");
    expect_file_refused("auth.issuer: ~\n", "rollcall.yaml:1: auth.issuer has no value");
}

static void wrong_value_names_line_value_and_expectation(void **state)
{
    (void)state;
    expect_file_refused("gateway:\n  listen: 127.0.0.1:1\n\n  workers: many\n",
                        "rollcall.yaml:4: gateway.workers cannot be \"many\"; expected an integer "
                        "from 0 to 256");
    expect_file_refused("timing:\n  profile: fast\n",
                        "rollcall.yaml:2: timing.profile cannot be \"fast\"; expected realtime, "
                        "standard or relaxed");
    expect_file_refused("peer:\n  peers:\n    - a:1\n    - b\n",
                        "rollcall.yaml:4: peer.peers cannot be \"b\"; expected a list, each item "
                        "HOST:PORT or [IPV6]:PORT");
    expect_file_refused("peer.secret: \"hunter2\\n\"\n",
                        "rollcall.yaml:1: peer.secret has a wrong value (not shown); expected "
                        "UTF-8 text without control characters");
    expect_file_refused("gateway.workers: \"\\e[2J\"\n",
                        "rollcall.yaml:1: gateway.workers cannot be \"\\x1b[2J\"; expected an "
                        "integer from 0 to 256");
}

static void node_of_the_wrong_kind_is_refused(void **state)
{
    (void)state;
    expect_file_refused("dev: false\ngateway: 5\n",
                        "rollcall.yaml:2: gateway is a section; expected settings below it");
    expect_file_refused("gateway: [1]\n",
                        "rollcall.yaml:1: gateway is a section; expected settings below it");
    expect_file_refused("gateway:\n  workers:\n    many: 1\n",
                        "rollcall.yaml:3: gateway.workers cannot be a mapping; expected an "
                        "integer from 0 to 256");
    expect_file_refused("gateway.workers: [1]\n",
                        "rollcall.yaml:1: gateway.workers cannot be a list; expected an integer "
                        "from 0 to 256");
    expect_file_refused("peer.peers: [[a:1]]\n",
                        "rollcall.yaml:1: an item of peer.peers must be a text");
    expect_file_refused("peer.peers: {a: 1}\n",
                        "rollcall.yaml:1: peer.peers cannot be a mapping; expected a list, each "
                        "item HOST:PORT or [IPV6]:PORT");
    expect_file_refused("- dev\n", "rollcall.yaml:1: expected a mapping of settings");
    expect_file_refused("\ndev\n", "rollcall.yaml:2: expected a mapping of settings");
    expect_file_refused("? [a]\n: b\n", "rollcall.yaml:1: expected the name of a setting");
}

static void unknown_name_suggests_the_nearest(void **state)
{
    (void)state;
    expect_file_refused("dev: false\n\ngatway:\n  listen: 127.0.0.1:1\n",
                        "rollcall.yaml:3: there is no setting \"gatway\"; did you mean gateway?");
    expect_file_refused("gateway:\n  wrokers: 1\n",
                        "rollcall.yaml:2: there is no setting \"gateway.wrokers\"; did you mean "
                        "gateway.workers?");
    expect_file_refused("heartbeat_timeout_seconds: 1\n",
                        "rollcall.yaml:1: there is no setting \"heartbeat_timeout_seconds\"; did "
                        "you mean gateway.timeouts.heartbeat_timeout_seconds?");
    expect_file_refused("colour_scheme: dark\n", "rollcall.yaml:1: " NO_SETTING("colour_scheme"));
    expect_file_refused("dev.x: 1\n", "rollcall.yaml:1: " NO_SETTING("dev.x"));
    expect_file_refused("\"\": 1\n", "rollcall.yaml:1: " NO_SETTING(""));
    expect_file_refused("\"dev\\0x\": true\n", "rollcall.yaml:1: " NO_SETTING("dev\\x00x"));
}

static void very_long_name_is_unknown(void **state)
{
    (void)state;
    char yaml[1024] = "gateway:\n  ";
    char *at = yaml + strlen(yaml);
    memset(at, 'x', 900);
    strcpy(at + 900, ": 1\n");
    struct config config;
    struct config_error error;
    config_testing_write_file(yaml);
    struct config_inputs inputs = {.file = CONFIG_TESTING_FILE};
    assert_false(config_load(&config, &inputs, &error));
    assert_non_null(strstr(error.text, "rollcall.yaml:2: there is no setting \"gateway.xxx"));
}

static void duplicate_key_names_both_lines(void **state)
{
    (void)state;
    expect_file_refused("gateway:\n  workers: 1\n  listen: 127.0.0.1:1\n  workers: 1\n",
                        "rollcall.yaml:4: gateway.workers was given on line 2 already");
    expect_file_refused("gateway.workers: 1\ngateway:\n  workers: 2\n",
                        "rollcall.yaml:3: gateway.workers was given on line 1 already");
    expect_file_refused("gateway:\n  workers: 1\npresence: {}\ngateway:\n  listen: 127.0.0.1:1\n",
                        "rollcall.yaml:4: gateway was given on line 1 already");
}

static void anchors_aliases_and_tags_are_refused(void **state)
{
    (void)state;
    const char *refused = "rollcall.yaml:2: anchors, aliases and tags are not supported";
    expect_file_refused("dev: false\nauth.issuer: &name x\n", refused);
    expect_file_refused("dev: false\nauth.issuer: *name\n", refused);
    expect_file_refused("dev: false\nauth.issuer: !!str x\n", refused);
    expect_file_refused("dev: false\n&name auth.issuer: x\n", refused);
    expect_file_refused("dev: false\nauth: &name {issuer: x}\n", refused);
    expect_file_refused("dev: false\npeer.peers: !!seq [a:1]\n", refused);
    expect_file_refused("dev: false\n---\ndev: true\n",
                        "rollcall.yaml:2: a second document is not supported");
}

static void syntax_error_names_the_line(void **state)
{
    (void)state;
    expect_file_refused("dev: false\ngateway:\n\tworkers: 1\n",
                        "rollcall.yaml:3: not valid YAML: found character that cannot start any "
                        "token");
    expect_file_refused("dev: false\nauth.issuer: \"x\n",
                        "rollcall.yaml:3: not valid YAML: found unexpected end of stream");
    expect_file_refused("dev: false\nauth.issuer: a: b\n",
                        "rollcall.yaml:2: not valid YAML: mapping values are not allowed in this "
                        "context");
}

static void unreadable_file_is_reported(void **state)
{
    (void)state;
    expect_refused(&(struct config_inputs){.file = "missing.yaml"},
                   "missing.yaml: cannot be opened: No such file or directory");
    expect_refused(&(struct config_inputs){.file = "."}, ".: cannot be read: Is a directory");
}

static void file_size_is_bounded(void **state)
{
    (void)state;
    struct config config;
    char *yaml = malloc(CONFIG_FILE_BYTES_MAX + 2);
    assert_non_null(yaml);
    memset(yaml, '\n', CONFIG_FILE_BYTES_MAX + 1);
    yaml[CONFIG_FILE_BYTES_MAX + 1] = '\0';
    expect_file_refused(yaml, "rollcall.yaml: is larger than 1048576 bytes");
    yaml[CONFIG_FILE_BYTES_MAX] = '\0';
    expect_file_loaded(&config, yaml);
    config_free(&config);
    free(yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_and_dotted_names_are_equivalent),
        cmocka_unit_test(empty_files_documents_and_sections_are_valid),
        cmocka_unit_test(list_has_three_spellings),
        cmocka_unit_test(quotes_matter_for_empty_values_only),
        cmocka_unit_test(wrong_value_names_line_value_and_expectation),
        cmocka_unit_test(node_of_the_wrong_kind_is_refused),
        cmocka_unit_test(unknown_name_suggests_the_nearest),
        cmocka_unit_test(very_long_name_is_unknown),
        cmocka_unit_test(duplicate_key_names_both_lines),
        cmocka_unit_test(anchors_aliases_and_tags_are_refused),
        cmocka_unit_test(syntax_error_names_the_line),
        cmocka_unit_test(unreadable_file_is_reported),
        cmocka_unit_test(file_size_is_bounded),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
