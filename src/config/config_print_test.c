/* Tests that the printed configuration names sources, hides secrets and loads back to the same
 * values. */
#include "config/config_testing.h"

#include "config/setting.h"

static void print_to(char **text, const struct config *config)
{
    size_t len = 0;
    FILE *out = open_memstream(text, &len);
    assert_non_null(out);
    config_print(config, out);
    assert_int_equal(fclose(out), 0);
}

static void expect_line(const char *text, const char *line)
{
    const char *at = strstr(text, line);
    if (!at || (at > text && at[-1] != '\n') || at[strlen(line)] != '\n')
        fail_msg("no line \"%s\" in:\n%s", line, text);
}

static void expect_same_values(const struct config *a, const struct config *b)
{
    for (size_t i = 0; i < setting_count(); i++) {
        struct buffer left = BUFFER_INIT, right = BUFFER_INIT;
        setting_write_value(&left, setting_at(i), a);
        setting_write_value(&right, setting_at(i), b);
        if (!setting_at(i)->secret && !slice_equal(buffer_slice(&left), buffer_slice(&right)))
            fail_msg("%s: %.*s became %.*s", setting_at(i)->name, (int)left.len, left.data,
                     (int)right.len, right.data);
        buffer_free(&left);
        buffer_free(&right);
    }
}

static void expect_round_trip(const struct config *config)
{
    struct config again;
    char *text = NULL;
    print_to(&text, config);
    expect_file_loaded(&again, text);
    expect_same_values(config, &again);
    config_free(&again);
    free(text);
}

static void each_value_names_its_source(void **state)
{
    (void)state;
    struct config config;
    char *const variables[] = {(char *)"ROLLCALL_PRESENCE__IDLE_SECONDS=0.25", NULL};
    static const char *const assignments[] = {"peer.peers=a:1,b:2"};
    static const struct config_flag flags[] = {{"--listen", "gateway.listen", "127.0.0.1:0"}};
    config_testing_write_file("dev: true\n\nlog.level: warn\n");
    expect_loaded(&config, &(struct config_inputs){.file = CONFIG_TESTING_FILE,
                                                   .environment = variables,
                                                   .assignments = assignments,
                                                   .assignment_count = 1,
                                                   .flags = flags,
                                                   .flag_count = 1});
    char *text = NULL;
    print_to(&text, &config);
    expect_line(text, "dev: true  # file, line 1");
    expect_line(text, "gateway:");
    expect_line(text, "  listen: \"127.0.0.1:0\"  # flag");
    expect_line(text, "  backpressure:");
    expect_line(text, "      rate_limit_burst: 20  # default");
    expect_line(text, "  idle_seconds: 0.25  # env");
    expect_line(text, "  peers: [\"a:1\", \"b:2\"]  # set");
    expect_line(text, "  level: warn  # file, line 3");
    expect_line(text, "  dev: true  # default");
    free(text);
    expect_round_trip(&config);
    config_free(&config);
}

static void secrets_are_not_shown(void **state)
{
    (void)state;
    struct config config;
    expect_sets_loaded(&config, SETS("peer.secret=hunter2"));
    char *text = NULL;
    print_to(&text, &config);
    assert_null(strstr(text, "hunter2"));
    expect_line(text, "  # secret: (not shown)  # set");
    free(text);
    expect_round_trip(&config);
    config_free(&config);
    expect_sets_loaded(&config, SETS("dev=true"));
    print_to(&text, &config);
    expect_line(text, "  # secret: (empty)  # default");
    free(text);
    config_free(&config);
}

static void passwords_in_urls_are_not_shown(void **state)
{
    (void)state;
    struct config config;
    struct config_error error;
    expect_sets_loaded(&config, SETS("state.url=redis://:hunter2@localhost:6379"));
    char *text = NULL;
    print_to(&text, &config);
    assert_null(strstr(text, "hunter2"));
    expect_line(text, "  # url: (not shown)  # set");
    free(text);
    config_free(&config);
    const char *const wrong[] = {"state.url=http://:hunter2@localhost:6379"};
    struct config_inputs inputs = {.assignments = wrong, .assignment_count = 1};
    assert_false(config_load(&config, &inputs, &error));
    assert_null(strstr(error.text, "hunter2"));
}

static void printed_configuration_loads_back(void **state)
{
    (void)state;
    struct config config;
    expect_loaded(&config, &(struct config_inputs){0});
    expect_round_trip(&config);
    config_free(&config);
    expect_sets_loaded(&config, SETS("presence.expiry_window_seconds=0.001"));
    expect_round_trip(&config);
    config_free(&config);
    expect_sets_loaded(&config, SETS("gateway.timeouts.heartbeat_interval_seconds=7884000"));
    expect_round_trip(&config);
    config_free(&config);
    expect_sets_loaded(&config, SETS("auth.issuer=a \"b\" \\ # : ü", "auth.audience=null",
                                     "data_dir=~", "timing.profile=relaxed",
                                     "gateway.allowed_origins=https://a.b,http://[::1]:8080"));
    expect_round_trip(&config);
    config_free(&config);
}

/* Sets every number to its minimum and to its maximum, one at a time. */
static void bounds_of_every_number_load_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *setting = setting_at(i);
        for (int side = 0; side < 2 && setting->max > 0; side++) {
            struct buffer set = BUFFER_INIT;
            struct config config;
            struct config_error error;
            buffer_printf(&set, "%s=", setting->name);
            setting_write_number(&set, setting, side ? setting->max : setting->min);
            buffer_append_byte(&set, '\0');
            struct config_inputs inputs = SETS(set.data);
            if (config_load(&config, &inputs, &error)) {
                expect_round_trip(&config);
                config_free(&config);
            } else {
                assert_non_null(strstr(error.text, " must "));
            }
            buffer_free(&set);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_names_its_source),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(passwords_in_urls_are_not_shown),
        cmocka_unit_test(printed_configuration_loads_back),
        cmocka_unit_test(bounds_of_every_number_load_back),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
