/* Tests values that contradict each other and values that are legal but odd. */
#include "config/config_testing.h"

static void contradiction_names_both_values_and_sources(void **state)
{
    (void)state;
    static const char *const assignments[] = {"presence.expiry_window_seconds=0.5"};
    config_testing_write_file("gateway:\n  timeouts:\n    heartbeat_timeout_seconds: 0.6\n");
    expect_refused(&(struct config_inputs){.file = CONFIG_TESTING_FILE,
                                           .assignments = assignments,
                                           .assignment_count = 1},
                   "gateway.timeouts.heartbeat_timeout_seconds (0.6, line 3) must not exceed "
                   "presence.expiry_window_seconds (0.5, set)");
}

static void initial_backoff_must_not_exceed_max(void **state)
{
    (void)state;
    expect_sets_refused(SETS("fanout.retry.initial_backoff_ms=1001"),
                        "fanout.retry.initial_backoff_ms (1001, set) must not exceed "
                        "fanout.retry.max_backoff_ms (1000, default)");
    expect_sets_refused(SETS("durability.dynamodb.retry.max_backoff_ms=99"),
                        "durability.dynamodb.retry.initial_backoff_ms (100, default) must not "
                        "exceed durability.dynamodb.retry.max_backoff_ms (99, set)");
}

static void certificate_and_key_are_required_together(void **state)
{
    (void)state;
    struct config config;
    expect_sets_refused(SETS("gateway.tls.key_file=k.pem"),
                        "gateway.tls.certificate_file and gateway.tls.key_file go together, but "
                        "gateway.tls.certificate_file is empty");
    expect_sets_refused(SETS("peer.tls.key_file=k.pem"),
                        "peer.tls.certificate_file and peer.tls.key_file go together, but "
                        "peer.tls.certificate_file is empty");
    expect_sets_refused(SETS("gateway.tls.certificate_file=c.pem"),
                        "gateway.tls.certificate_file and gateway.tls.key_file go together, but "
                        "gateway.tls.key_file is empty");
    expect_sets_loaded(&config,
                       SETS("gateway.tls.certificate_file=c.pem", "gateway.tls.key_file=k.pem"));
    config_free(&config);
}

static void turn_servers_need_credentials(void **state)
{
    (void)state;
    struct config config;
    expect_sets_refused(SETS("ice.servers=stun:a,turn:b", "ice.username=u"),
                        "a TURN server in ice.servers needs ice.username and ice.credential");
    expect_sets_refused(SETS("turn.urls=turn:a"),
                        "turn.urls and turn.secret go together, but turn.secret is empty");
    expect_sets_refused(SETS("turn.secret=s"),
                        "turn.urls and turn.secret go together, but turn.urls is empty");
    expect_sets_loaded(&config, SETS("ice.servers=stun:a,turn:b", "ice.username=u",
                                     "ice.credential=c", "turn.urls=turns:d", "turn.secret=s"));
    config_free(&config);
    expect_sets_loaded(&config, SETS("ice.servers=stun:a"));
    config_free(&config);
}

static void development_server_accepts_loopback_only(void **state)
{
    (void)state;
    struct config config;
    expect_sets_refused(SETS("dev=true", "gateway.listen=0.0.0.0:8080"),
                        "gateway.listen (\"0.0.0.0:8080\", set) must be a loopback address such "
                        "as 127.0.0.1:8080, because dev (--dev) is on");
    expect_sets_refused(SETS("dev=true", "auth.dev=false", "gateway.listen=[::]:80"),
                        "gateway.listen (\"[::]:80\", set) must be a loopback address such as "
                        "127.0.0.1:8080, because dev (--dev) is on");
    expect_sets_refused(SETS("auth.dev=true", "gateway.listen=example.org:80"),
                        "gateway.listen (\"example.org:80\", set) must be a loopback address such "
                        "as 127.0.0.1:8080, because auth.dev is on");
    expect_sets_refused(SETS("dev=true", "peer.listen=10.0.0.1:9000"),
                        "peer.listen (\"10.0.0.1:9000\", set) must be a loopback address such as "
                        "127.0.0.1:8080, because dev (--dev) is on");
    expect_sets_loaded(&config, SETS("dev=true", "gateway.listen=[::1]:0"));
    config_free(&config);
    expect_sets_loaded(&config, SETS("gateway.listen=0.0.0.0:8080"));
    config_free(&config);
}

static void expect_warned(struct config_inputs inputs, size_t count, const char *first)
{
    struct config config;
    struct config_error warnings[CONFIG_WARNINGS_MAX];
    expect_sets_loaded(&config, inputs);
    assert_int_equal(config_warnings(&config, warnings), count);
    if (count > 0)
        assert_string_equal(warnings[0].text, first);
    config_free(&config);
}

static void odd_values_give_warnings(void **state)
{
    (void)state;
    expect_warned(SETS("dev=true"), 0, NULL);
    expect_warned(SETS("gateway.timeouts.heartbeat_interval_seconds=30",
                       "gateway.timeouts.heartbeat_timeout_seconds=10"),
                  1,
                  "gateway.timeouts.heartbeat_interval_seconds (30, set) should be less than "
                  "gateway.timeouts.heartbeat_timeout_seconds (10, set): connections turn "
                  "unhealthy between two heartbeats and live on pongs alone");
    expect_warned(SETS("gateway.backpressure.inbound.rate_limit_burst=3"), 1,
                  "gateway.backpressure.inbound.rate_limit_per_second (10, default) should not "
                  "exceed gateway.backpressure.inbound.rate_limit_burst (3, set): a second's "
                  "allowance cannot be sent at once");
    expect_warned(SETS("peer.peers=a:1"), 1, "peer.secret is empty: peer links are off");
    expect_warned(SETS("peer.peers=a:1", "peer.secret=s"), 0, NULL);
    expect_warned(SETS("durability.kafka.producer.acks=1"), 0, NULL);
    expect_warned(SETS("feed.url=kafka://a:1", "durability.kafka.producer.acks=1",
                       "fanout.kafka.consumer.enable_auto_commit=true"),
                  2,
                  "durability.kafka.producer.acks is not all: a message that was acknowledged may "
                  "never reach the fan-out");
}

/* The reference of the failure document, value by value. */
static void reference_of_the_specification_loads(void **state)
{
    (void)state;
    struct config config;
    expect_file_loaded(
        &config,
        "gateway:\n"
        "  backpressure:\n"
        "    inbound:\n"
        "      rate_limit_per_second: 10\n      rate_limit_burst: 20\n"
        "      max_queue_depth: 100\n      max_message_size_bytes: 4096\n"
        "    outbound:\n"
        "      max_buffer_messages: 1000\n      warning_threshold_percent: 80\n"
        "      critical_threshold_percent: 95\n      grace_period_seconds: 5\n"
        "  \n"
        "  circuit_breaker:\n"
        "    failure_threshold: 5\n    failure_window_seconds: 30\n"
        "    open_duration_seconds: 30\n    half_open_probe_count: 1\n"
        "  timeouts:\n"
        "    durability_rpc_seconds: 5\n    heartbeat_interval_seconds: 30\n"
        "    heartbeat_timeout_seconds: 10\n"
        "  shutdown:\n    drain_timeout_seconds: 30\n"
        "durability:\n"
        "  dynamodb:\n"
        "    retry:\n      max_attempts: 3\n      initial_backoff_ms: 100\n"
        "      max_backoff_ms: 5000\n"
        "    transaction_conflict:\n      max_attempts: 5\n      jitter_ms: 50\n"
        "  kafka:\n    producer:\n      acks: \"all\"\n      timeout_ms: 10000\n"
        "      retries: 3\n      retry_backoff_ms: 100\n"
        "fanout:\n"
        "  kafka:\n    consumer:\n      group_id: \"fanout-workers\"\n"
        "      max_poll_records: 500\n      enable_auto_commit: false\n"
        "  retry:\n    max_attempts: 3\n    initial_backoff_ms: 100\n    max_backoff_ms: 1000\n"
        "  dlq:\n    topic: \"dead_letters.messages\"\n    alert_threshold_per_hour: 100\n");
    assert_int_equal(config.gateway.timeouts.heartbeat_interval_ms, 30000);
    assert_string_equal(config.fanout.dlq.topic, "dead_letters.messages");
    config_free(&config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradiction_names_both_values_and_sources),
        cmocka_unit_test(initial_backoff_must_not_exceed_max),
        cmocka_unit_test(certificate_and_key_are_required_together),
        cmocka_unit_test(turn_servers_need_credentials),
        cmocka_unit_test(development_server_accepts_loopback_only),
        cmocka_unit_test(odd_values_give_warnings),
        cmocka_unit_test(reference_of_the_specification_loads),
    };
    return cmocka_run_group_tests(tests, config_testing_begin, config_testing_end);
}
