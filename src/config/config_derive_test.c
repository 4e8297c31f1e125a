/* Tests defaults that depend on other settings. */
#include "config/config_testing.h"

#define INTERVAL "gateway.timeouts.heartbeat_interval_seconds="
#define TIMEOUT "gateway.timeouts.heartbeat_timeout_seconds="
#define WINDOW "presence.expiry_window_seconds="
#define INBOUND "gateway.backpressure.inbound."
#define OUTBOUND "gateway.backpressure.outbound."

static void expect_timing(struct config_inputs inputs, int64_t interval_ms, int64_t timeout_ms,
                          int64_t window_ms)
{
    struct config config;
    expect_sets_loaded(&config, inputs);
    assert_int_equal(config.gateway.timeouts.heartbeat_interval_ms, interval_ms);
    assert_int_equal(config.gateway.timeouts.heartbeat_timeout_ms, timeout_ms);
    assert_int_equal(config.presence.expiry_window_ms, window_ms);
    config_free(&config);
}

static void profile_sets_three_numbers(void **state)
{
    (void)state;
    expect_timing(SETS("timing.profile=realtime"), 5000, 10000, 15000);
    expect_timing(SETS("timing.profile=standard"), 30000, 40000, 45000);
    expect_timing(SETS("timing.profile=relaxed"), 30000, 60000, 90000);
}

static void each_number_can_be_set_alone(void **state)
{
    (void)state;
    expect_timing(SETS(INTERVAL "3"), 3000, 10000, 15000);
    expect_timing(SETS(TIMEOUT "12"), 5000, 12000, 15000);
    expect_timing(SETS(WINDOW "20"), 5000, 10000, 20000);
    expect_timing(SETS("timing.profile=relaxed", WINDOW "61"), 30000, 60000, 61000);
    expect_timing(SETS(WINDOW "20", "timing.profile=standard"), 6667, 13334, 20000);
}

static void unset_values_adapt_to_set_ones(void **state)
{
    (void)state;
    expect_timing(SETS(WINDOW "0.3"), 100, 200, 300);
    expect_timing(SETS(TIMEOUT "0.4"), 200, 400, 15000);
    expect_timing(SETS(TIMEOUT "20"), 5000, 20000, 30000);
    expect_timing(SETS(INTERVAL "10"), 10000, 20000, 30000);
    expect_timing(SETS(INTERVAL "8", WINDOW "9"), 8000, 6000, 9000);
    expect_timing(SETS(WINDOW "0.001"), 1, 1, 1);
}

static void set_values_never_adapt(void **state)
{
    (void)state;
    expect_timing(SETS(INTERVAL "0.1", TIMEOUT "0.2", WINDOW "0.3"), 100, 200, 300);
    expect_timing(SETS(INTERVAL "30", TIMEOUT "10"), 30000, 10000, 15000);
    expect_sets_refused(SETS(TIMEOUT "20", WINDOW "15"),
                        "gateway.timeouts.heartbeat_timeout_seconds (20, set) must not exceed "
                        "presence.expiry_window_seconds (15, set)");
}

static void value_of_any_source_overrides_the_profile(void **state)
{
    (void)state;
    struct config config;
    char *const variables[] = {(char *)"ROLLCALL_PRESENCE__EXPIRY_WINDOW_SECONDS=120", NULL};
    static const char *const assignments[] = {"timing.profile=standard"};
    config_testing_write_file("gateway.timeouts.heartbeat_interval_seconds: 2\n");
    expect_loaded(&config, &(struct config_inputs){.file = CONFIG_TESTING_FILE,
                                                   .environment = variables,
                                                   .assignments = assignments,
                                                   .assignment_count = 1});
    assert_int_equal(config.gateway.timeouts.heartbeat_interval_ms, 2000);
    assert_int_equal(config.gateway.timeouts.heartbeat_timeout_ms, 40000);
    assert_int_equal(config.presence.expiry_window_ms, 120000);
    config_free(&config);
}

static void expect_rates(struct config_inputs inputs, uint32_t rate, uint32_t burst,
                         uint32_t command_rate, uint32_t command_burst)
{
    struct config config;
    expect_sets_loaded(&config, inputs);
    const struct config_inbound *inbound = &config.gateway.backpressure.inbound;
    assert_int_equal(inbound->rate_limit_per_second, rate);
    assert_int_equal(inbound->rate_limit_burst, burst);
    assert_int_equal(inbound->command_rate_per_second, command_rate);
    assert_int_equal(inbound->command_rate_burst, command_burst);
    config_free(&config);
}

static void expect_offline_grace(struct config_inputs inputs, int64_t grace_ms)
{
    struct config config;
    expect_sets_loaded(&config, inputs);
    assert_int_equal(config.presence.offline_grace_ms, grace_ms);
    config_free(&config);
}

static void development_mode_hides_a_page_reload(void **state)
{
    (void)state;
    expect_offline_grace(SETS("dev=false"), 0);
    expect_offline_grace(SETS("dev=true"), 3000);
    expect_offline_grace(SETS("dev=true", "presence.offline_grace_seconds=0"), 0);
    expect_offline_grace(SETS("dev=true", "presence.offline_grace_seconds=7"), 7000);
}

static void unset_limits_follow_a_raised_one(void **state)
{
    (void)state;
    expect_rates(SETS("dev=false"), 10, 20, 50, 100);
    expect_rates(SETS(INBOUND "rate_limit_per_second=15"), 15, 20, 50, 100);
    expect_rates(SETS(INBOUND "rate_limit_per_second=1000"), 1000, 1000, 1000, 1000);
    expect_rates(SETS(INBOUND "rate_limit_burst=500"), 10, 500, 50, 500);
    expect_rates(SETS(INBOUND "rate_limit_burst=3"), 10, 3, 50, 100);
    expect_rates(SETS(INBOUND "rate_limit_per_second=1000", INBOUND "command_rate_per_second=5"),
                 1000, 1000, 5, 1000);
}

static void expect_limits(struct config_inputs inputs, uint32_t messages, uint32_t messages_burst,
                          uint32_t contact_requests, uint32_t contact_requests_burst)
{
    struct config config;
    expect_sets_loaded(&config, inputs);
    assert_int_equal(config.limits.messages_per_second_per_user, messages);
    assert_int_equal(config.limits.messages_per_second_per_user_burst, messages_burst);
    assert_int_equal(config.limits.contact_requests_per_hour, contact_requests);
    assert_int_equal(config.limits.contact_requests_per_hour_burst, contact_requests_burst);
    config_free(&config);
}

static void unset_bursts_follow_the_rates_of_users(void **state)
{
    (void)state;
    expect_limits(SETS("dev=false"), 30, 60, 60, 20);
    expect_limits(
        SETS("limits.messages_per_second_per_user=5", "limits.contact_requests_per_hour=3"), 5, 5,
        3, 3);
    expect_limits(SETS("limits.contact_requests_per_hour=40"), 30, 60, 40, 20);
    expect_limits(SETS("limits.contact_requests_per_hour=600"), 30, 60, 600, 200);
    expect_limits(
        SETS("limits.contact_requests_per_hour=5", "limits.contact_requests_per_hour_burst=50"), 30,
        60, 5, 50);
    expect_limits(SETS("limits.messages_per_second_per_user=0"), 0, 60, 60, 20);
}

/* Who lets a connection send more means to let its user send as much. */
static void users_may_send_what_a_connection_may(void **state)
{
    (void)state;
    expect_limits(SETS(INBOUND "rate_limit_per_second=1000"), 1000, 2000, 60, 20);
    expect_limits(SETS(INBOUND "rate_limit_burst=500"), 30, 500, 60, 20);
    expect_limits(
        SETS(INBOUND "rate_limit_per_second=1000", "limits.messages_per_second_per_user=5"), 5, 5,
        60, 20);
}

static void expect_thresholds(struct config_inputs inputs, uint32_t warning, uint32_t critical)
{
    struct config config;
    expect_sets_loaded(&config, inputs);
    assert_int_equal(config.gateway.backpressure.outbound.warning_threshold_percent, warning);
    assert_int_equal(config.gateway.backpressure.outbound.critical_threshold_percent, critical);
    config_free(&config);
}

static void unset_threshold_keeps_the_order(void **state)
{
    (void)state;
    expect_thresholds(SETS("dev=false"), 80, 95);
    expect_thresholds(SETS(OUTBOUND "critical_threshold_percent=50"), 40, 50);
    expect_thresholds(SETS(OUTBOUND "critical_threshold_percent=2"), 1, 2);
    expect_thresholds(SETS(OUTBOUND "warning_threshold_percent=97"), 97, 100);
    expect_sets_refused(SETS(OUTBOUND "warning_threshold_percent=100"),
                        "gateway.backpressure.outbound.warning_threshold_percent (100, set) must "
                        "be less than gateway.backpressure.outbound.critical_threshold_percent "
                        "(100, default)");
}

static void dev_turns_on_auth_dev_unless_it_is_set(void **state)
{
    (void)state;
    struct config config;
    expect_sets_loaded(&config, SETS("dev=true"));
    assert_true(config.auth.dev);
    config_free(&config);
    expect_sets_loaded(&config, SETS("dev=true", "auth.dev=false"));
    assert_false(config.auth.dev);
    config_free(&config);
    expect_sets_loaded(&config, SETS("auth.dev=true"));
    assert_false(config.dev);
    config_free(&config);
}

static void node_id_is_never_empty(void **state)
{
    (void)state;
    struct config config;
    expect_sets_loaded(&config, SETS("gateway.node_id="));
    assert_string_equal(config.gateway.node_id, "rollcall");
    config_free(&config);
    expect_sets_loaded(&config, SETS("gateway.node_id=gw-001"));
    assert_string_equal(config.gateway.node_id, "gw-001");
    config_free(&config);
    expect_refused(&(struct config_inputs){.default_node_id = "my host"},
                   "the default node id: gateway.node_id cannot be \"my host\"; expected at most "
                   "64 letters, digits, dots, dashes and underscores");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(profile_sets_three_numbers),
        cmocka_unit_test(each_number_can_be_set_alone),
        cmocka_unit_test(unset_values_adapt_to_set_ones),
        cmocka_unit_test(set_values_never_adapt),
        cmocka_unit_test(value_of_any_source_overrides_the_profile),
        cmocka_unit_test(development_mode_hides_a_page_reload),
        cmocka_unit_test(unset_limits_follow_a_raised_one),
        cmocka_unit_test(unset_bursts_follow_the_rates_of_users),
        cmocka_unit_test(users_may_send_what_a_connection_may),
        cmocka_unit_test(unset_threshold_keeps_the_order),
        cmocka_unit_test(dev_turns_on_auth_dev_unless_it_is_set),
        cmocka_unit_test(node_id_is_never_empty),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
