#include "config/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct setting *setting_named(const char *name)
{
    const struct setting *setting = setting_find(slice_of(name));
    assert_non_null(setting);
    return setting;
}

/* Stores the text and compares how the value is written. */
static void expect_stored(const char *name, const char *text, const char *written)
{
    struct config config = {0};
    struct buffer out = BUFFER_INIT;
    if (setting_store(setting_named(name), &config, slice_of(text)) != SETTING_STORED)
        fail_msg("refused: %s=%s", name, text);
    setting_write_value(&out, setting_named(name), &config);
    buffer_append_byte(&out, '\0');
    assert_string_equal(out.data, written);
    buffer_free(&out);
    setting_release(setting_named(name), &config);
}

/* Expects each of the texts, which NULL terminates, to be refused. */
static void expect_refused(const char *name, const char *const *texts)
{
    for (; *texts; texts++) {
        struct config config = {0};
        if (setting_store(setting_named(name), &config, slice_of(*texts)) != SETTING_REFUSED)
            fail_msg("accepted: %s=%s", name, *texts);
        setting_release(setting_named(name), &config);
    }
}

#define EXPECT_REFUSED(name, ...) expect_refused(name, (const char *const[]){__VA_ARGS__, NULL})

static void expect_described(const char *name, const char *phrase)
{
    struct buffer out = BUFFER_INIT;
    setting_write_expected(&out, setting_named(name));
    buffer_append_byte(&out, '\0');
    assert_string_equal(out.data, phrase);
    buffer_free(&out);
}

static void bool_accepts_true_and_false(void **state)
{
    (void)state;
    expect_stored("dev", "true", "true");
    expect_stored("dev", "false", "false");
    EXPECT_REFUSED("dev", "yes", "True", "1", "");
    expect_described("dev", "true or false");
}

static void count_accepts_integers_in_bounds(void **state)
{
    (void)state;
    expect_stored("gateway.workers", "0", "0");
    expect_stored("gateway.workers", "256", "256");
    expect_stored("gateway.workers", "007", "7");
    EXPECT_REFUSED("gateway.workers", "257", "-1", "+1", "1.0", "1 ", "0x10", "",
                   "99999999999999999999", "18446744073709551617");
    expect_described("gateway.workers", "an integer from 0 to 256");
}

static void bytes_accept_units(void **state)
{
    (void)state;
    expect_stored("gateway.memory_limit_bytes", "0", "0");
    expect_stored("gateway.memory_limit_bytes", "64KiB", "65536");
    expect_stored("gateway.memory_limit_bytes", "3MiB", "3145728");
    expect_stored("gateway.memory_limit_bytes", "2GiB", "2147483648");
    expect_stored("gateway.memory_limit_bytes", "1024GiB", "1099511627776");
    EXPECT_REFUSED("gateway.memory_limit_bytes", "1025GiB", "9223372036854775807GiB", "64KB",
                   "64 KiB", "KiB");
    EXPECT_REFUSED("gateway.max_frame_bytes", "127");
    expect_described("gateway.max_frame_bytes",
                     "a number of bytes (KiB, MiB and GiB may follow) from 128 to 1073741824");
}

static void seconds_accept_decimals(void **state)
{
    (void)state;
    expect_stored("presence.idle_seconds", "300", "300");
    expect_stored("presence.idle_seconds", "0.3", "0.3");
    expect_stored("presence.idle_seconds", ".25", "0.25");
    expect_stored("presence.idle_seconds", "1.005", "1.005");
    expect_stored("presence.idle_seconds", "2.050", "2.05");
    expect_stored("presence.idle_seconds", "0.30000000000000004", "0.3");
    expect_stored("presence.idle_seconds", "0.0995", "0.1");
    expect_stored("presence.idle_seconds", "0.9999", "1");
    expect_stored("presence.offline_grace_seconds", "0", "0");
    EXPECT_REFUSED("presence.idle_seconds", "0", "0.0001", "5.", ".", "5s", "1e3", "1.2.3", "-1",
                   "nan", "31536000.001", "9223372036854775807");
    expect_described("presence.idle_seconds", "seconds (decimals allowed) from 0.001 to 31536000");
}

static void milliseconds_accept_integers(void **state)
{
    (void)state;
    expect_stored("socketio.ping_interval_ms", "300", "300");
    EXPECT_REFUSED("socketio.ping_interval_ms", "0.3", "0");
    expect_described("socketio.ping_interval_ms", "milliseconds from 1 to 31536000000");
}

static void choice_accepts_its_names(void **state)
{
    (void)state;
    expect_stored("timing.profile", "relaxed", "relaxed");
    expect_stored("log.level", "warn", "warn");
    expect_stored("durability.kafka.producer.acks", "all", "all");
    EXPECT_REFUSED("timing.profile", "Relaxed", "");
    expect_described("timing.profile", "realtime, standard or relaxed");
}

static void choices_match_their_enums(void **state)
{
    (void)state;
    struct config config = {0};
    setting_store(setting_named("log.level"), &config, SLICE("error"));
    setting_store(setting_named("timing.profile"), &config, SLICE("standard"));
    setting_store(setting_named("durability.kafka.producer.acks"), &config, SLICE("0"));
    assert_int_equal(config.log.level, LOG_LEVEL_ERROR);
    assert_int_equal(config.timing.profile, TIMING_STANDARD);
    assert_int_equal(config.durability.kafka.producer.acks, KAFKA_ACKS_NONE);
}

static void text_refuses_control_characters(void **state)
{
    (void)state;
    expect_stored("auth.issuer", "", "\"\"");
    expect_stored("auth.issuer", "a \"b\" \\c, ü", "\"a \\\"b\\\" \\\\c, ü\"");
    EXPECT_REFUSED("auth.issuer", "a\nb", "a\x7f", "\xff");
    EXPECT_REFUSED("data_dir", "");
    expect_described("auth.issuer", "UTF-8 text without control characters");
}

static void text_follows_its_rule(void **state)
{
    (void)state;
    expect_stored("gateway.listen", "[::1]:0", "\"[::1]:0\"");
    EXPECT_REFUSED("gateway.listen", "8080", "");
    expect_stored("peer.listen", "", "\"\"");
    EXPECT_REFUSED("peer.listen", "x");
    expect_stored("gateway.node_id", "gw-001_a.B", "\"gw-001_a.B\"");
    EXPECT_REFUSED("gateway.node_id", "gw 1", "gw:1",
                   "0123456789012345678901234567890123456789012345678901234567890123x");
    expect_stored("state.url", "redis://127.0.0.1:6379/3", "\"redis://127.0.0.1:6379/3\"");
    expect_stored("state.url", "redis-cluster://a:1,b:2", "\"redis-cluster://a:1,b:2\"");
    EXPECT_REFUSED("state.url", "redis://", "memory://", "");
    expect_stored("ledger.url", "", "\"\"");
    expect_stored("ledger.url", "sqlite:/x", "\"sqlite:/x\"");
    expect_stored("ledger.url", "remote://h:1", "\"remote://h:1\"");
    expect_stored("ledger.url", "dynamodb://eu-west-1", "\"dynamodb://eu-west-1\"");
    EXPECT_REFUSED("ledger.url", "postgres://h");
    expect_stored("feed.url", "kafka://a:1", "\"kafka://a:1\"");
    expect_stored("feed.url", "kafka+ssl://a:1,b:2", "\"kafka+ssl://a:1,b:2\"");
    EXPECT_REFUSED("feed.url", "nats://a:1");
    expect_described("gateway.listen", "HOST:PORT or [IPV6]:PORT");
}

static void list_is_split_at_commas(void **state)
{
    (void)state;
    expect_stored("peer.peers", "", "[]");
    expect_stored("peer.peers", "a:1", "[\"a:1\"]");
    expect_stored("peer.peers", "a:1, [::1]:2 ,b:3", "[\"a:1\", \"[::1]:2\", \"b:3\"]");
    EXPECT_REFUSED("peer.peers", "a:1,", ",a:1", "a:1,,b:2", "a:1,b", " ");
    expect_stored("gateway.allowed_origins", "https://a.b:8443", "[\"https://a.b:8443\"]");
    EXPECT_REFUSED("gateway.allowed_origins", "https://a.b/", "a.b", "https://");
    expect_stored("ice.servers", "stun:a.b, stuns:[::1]:1,turn:a:1?transport=tcp",
                  "[\"stun:a.b\", \"stuns:[::1]:1\", \"turn:a:1?transport=tcp\"]");
    EXPECT_REFUSED("ice.servers", "a.b:3478", "stun:", "stun://a.b", "stun:a.b?transport=udp",
                   "stun:a b", "stun:a:0", "stun:user@a", "turn:a?", "turn:a?transport=sctp");
    expect_stored("turn.urls", "turns:a.b:443?transport=udp", "[\"turns:a.b:443?transport=udp\"]");
    EXPECT_REFUSED("turn.urls", "stun:a.b", "turn:", "https://a.b");
    expect_described("peer.peers", "a list, each item HOST:PORT or [IPV6]:PORT");
}

static void list_length_is_bounded(void **state)
{
    (void)state;
    struct config config = {0};
    const struct setting *peers = setting_named("peer.peers");
    for (size_t i = 0; i < CONFIG_LIST_ITEMS_MAX; i++)
        assert_int_equal(setting_append(peers, &config, SLICE("a:1")), SETTING_STORED);
    assert_int_equal(setting_append(peers, &config, SLICE("a:1")), SETTING_REFUSED);
    assert_int_equal(config.peer.peers.count, CONFIG_LIST_ITEMS_MAX);
    setting_release(peers, &config);
    assert_int_equal(config.peer.peers.count, 0);
}

/* Each default is a valid value, each name is found, each help is a sentence. */
static void every_row_has_a_valid_default_and_a_help_sentence(void **state)
{
    (void)state;
    struct config config = {0};
    for (size_t i = 0; i < setting_count(); i++) {
        const struct setting *setting = setting_at(i);
        if (setting_store(setting, &config, slice_of(setting->initial)) != SETTING_STORED)
            fail_msg("%s: bad default", setting->name);
        setting_release(setting, &config);
        assert_ptr_equal(setting_find(slice_of(setting->name)), setting);
        assert_int_equal(setting_index(setting), i);
        assert_false(setting_is_section(slice_of(setting->name)));
        assert_true(setting->help[strlen(setting->help) - 1] == '.');
        assert_null(strstr(setting->name, "__"));
    }
}

static void section_is_a_prefix_of_a_name(void **state)
{
    (void)state;
    assert_true(setting_is_section(SLICE("gateway")));
    assert_true(setting_is_section(SLICE("gateway.backpressure.inbound")));
    assert_false(setting_is_section(SLICE("gate")));
    assert_false(setting_is_section(SLICE("gateway.")));
    assert_false(setting_is_section(SLICE("")));
    assert_true(slice_is(setting_nearest(SLICE("gatewy")), "gateway"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bool_accepts_true_and_false),
        cmocka_unit_test(count_accepts_integers_in_bounds),
        cmocka_unit_test(bytes_accept_units),
        cmocka_unit_test(seconds_accept_decimals),
        cmocka_unit_test(milliseconds_accept_integers),
        cmocka_unit_test(choice_accepts_its_names),
        cmocka_unit_test(choices_match_their_enums),
        cmocka_unit_test(text_refuses_control_characters),
        cmocka_unit_test(text_follows_its_rule),
        cmocka_unit_test(list_is_split_at_commas),
        cmocka_unit_test(list_length_is_bounded),
        cmocka_unit_test(every_row_has_a_valid_default_and_a_help_sentence),
        cmocka_unit_test(section_is_a_prefix_of_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
