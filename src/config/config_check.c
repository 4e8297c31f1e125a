#include "config/config_check.h"

#include "config/address.h"
#include "config/config_assign.h"
#include "config/setting.h"

#include <assert.h>

enum order { BELOW, AT_MOST };

/* Two numbers that must or should be in this order. */
struct order_rule {
    const char *left;
    enum order order;
    const char *right;
    const char *consequence; /* of a broken rule; NULL: a broken rule is an error */
};

#define INBOUND "gateway.backpressure.inbound."
#define OUTBOUND "gateway.backpressure.outbound."

static const struct order_rule order_rules[] = {
    {"gateway.timeouts.heartbeat_timeout_seconds", AT_MOST, "presence.expiry_window_seconds", NULL},
    {OUTBOUND "warning_threshold_percent", BELOW, OUTBOUND "critical_threshold_percent", NULL},
    {"durability.dynamodb.retry.initial_backoff_ms", AT_MOST,
     "durability.dynamodb.retry.max_backoff_ms", NULL},
    {"fanout.retry.initial_backoff_ms", AT_MOST, "fanout.retry.max_backoff_ms", NULL},
    {"gateway.timeouts.heartbeat_interval_seconds", BELOW,
     "gateway.timeouts.heartbeat_timeout_seconds",
     "connections turn unhealthy between two heartbeats and live on pongs alone"},
    {INBOUND "rate_limit_per_second", AT_MOST, INBOUND "rate_limit_burst",
     "a second's allowance cannot be sent at once"},
    {INBOUND "command_rate_per_second", AT_MOST, INBOUND "command_rate_burst",
     "a second's allowance cannot be sent at once"},
    {INBOUND "rate_limit_per_second", AT_MOST, INBOUND "command_rate_per_second",
     "the limit on all commands is met before the one on messages"},
    {INBOUND "max_message_size_bytes", AT_MOST, "gateway.max_frame_bytes",
     "the largest messages close the connection"},
};

#define ORDER_RULE_COUNT (sizeof(order_rules) / sizeof(order_rules[0]))

static const struct setting *find_config_setting(const char *name)
{
    const struct setting *setting = setting_find(slice_of(name));
    assert(setting);
    return setting;
}

static bool config_order_holds(const struct order_rule *rule, const struct config *config)
{
    int64_t left = setting_number(find_config_setting(rule->left), config);
    int64_t right = setting_number(find_config_setting(rule->right), config);
    return rule->order == BELOW ? left < right : left <= right;
}

/* Writes name, value and source of a setting: "gateway.workers (4, line 7)". */
static void write_config_setting(struct buffer *out, const struct config *config, const char *name)
{
    const struct setting *setting = find_config_setting(name);
    const struct config_origin *origin = &config->origins[setting_index(setting)];
    buffer_printf(out, "%s (", name);
    setting_write_value(out, setting, config);
    if (origin->source == CONFIG_FROM_FILE)
        buffer_printf(out, ", line %u)", origin->line);
    else
        buffer_printf(out, ", %s)", config_source_name(origin->source));
}

static void describe_broken_config_order(const struct order_rule *rule, const struct config *config,
                                         struct config_error *error)
{
    struct buffer text = BUFFER_INIT;
    write_config_setting(&text, config, rule->left);
    buffer_append_text(&text, rule->consequence ? " should " : " must ");
    buffer_append_text(&text, rule->order == BELOW ? "be less than " : "not exceed ");
    write_config_setting(&text, config, rule->right);
    if (rule->consequence)
        buffer_printf(&text, ": %s", rule->consequence);
    config_fail_text(error, &text);
}

static bool check_config_tls(const char *section, const char *certificate_file,
                             const char *key_file, struct config_error *error)
{
    bool has_key = key_file[0] != '\0';
    if ((certificate_file[0] != '\0') == has_key)
        return true;
    snprintf(error->text, sizeof(error->text),
             "%s.certificate_file and %s.key_file go together, but %s.%s is empty", section,
             section, section, has_key ? "certificate_file" : "key_file");
    return false;
}

static bool has_static_turn_server(const struct config *config)
{
    for (size_t i = 0; i < config->ice.servers.count; i++)
        if (config->ice.servers.items[i][0] == 't')
            return true;
    return false;
}

/* A browser refuses a TURN server without credentials, and with it the whole list. */
static bool check_config_ice(const struct config *config, struct config_error *error)
{
    bool has_login = config->ice.username[0] != '\0' && config->ice.credential[0] != '\0';
    bool has_secret = config->turn.secret[0] != '\0';
    const char *problem = NULL;
    if (has_static_turn_server(config) && !has_login)
        problem = "a TURN server in ice.servers needs ice.username and ice.credential";
    else if ((config->turn.urls.count > 0) != has_secret)
        problem = has_secret ? "turn.urls and turn.secret go together, but turn.urls is empty"
                             : "turn.urls and turn.secret go together, but turn.secret is empty";
    if (problem)
        snprintf(error->text, sizeof(error->text), "%s", problem);
    return !problem;
}

/* Anyone who can reach a development server can log in as any user. */
static bool check_config_loopback(const struct config *config, const char *name, const char *value,
                                  struct config_error *error)
{
    struct address address;
    if (!config->dev && !config->auth.dev)
        return true;
    if (value[0] == '\0' ||
        (address_parse(slice_of(value), &address) && address_is_loopback(&address)))
        return true;
    struct buffer text = BUFFER_INIT;
    write_config_setting(&text, config, name);
    buffer_printf(&text, " must be a loopback address such as 127.0.0.1:8080, because %s is on",
                  config->dev ? "dev (--dev)" : "auth.dev");
    return config_fail_text(error, &text);
}

bool config_check(const struct config *config, struct config_error *error)
{
    for (size_t i = 0; i < ORDER_RULE_COUNT; i++)
        if (!order_rules[i].consequence && !config_order_holds(&order_rules[i], config)) {
            describe_broken_config_order(&order_rules[i], config, error);
            return false;
        }
    return check_config_tls("durability.kafka.security",
                            config->durability.kafka.security.certificate_file,
                            config->durability.kafka.security.key_file, error) &&
           check_config_tls("gateway.tls", config->gateway.tls.certificate_file,
                            config->gateway.tls.key_file, error) &&
           check_config_tls("peer.tls", config->peer.tls.certificate_file,
                            config->peer.tls.key_file, error) &&
           check_config_tls("state", config->state.certificate_file, config->state.key_file,
                            error) &&
           check_config_ice(config, error) &&
           check_config_loopback(config, "gateway.listen", config->gateway.listen, error) &&
           check_config_loopback(config, "ops.listen", config->ops.listen, error) &&
           check_config_loopback(config, "peer.listen", config->peer.listen, error) &&
           check_config_loopback(config, "ledger.http_listen", config->ledger.http_listen, error);
}

static size_t add_config_warning(struct config_error *out, size_t count, bool applies,
                                 const char *text)
{
    if (!applies || count == CONFIG_WARNINGS_MAX)
        return count;
    snprintf(out[count].text, sizeof(out[count].text), "%s", text);
    return count + 1;
}

size_t config_warnings(const struct config *config, struct config_error out[CONFIG_WARNINGS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < ORDER_RULE_COUNT && count < CONFIG_WARNINGS_MAX; i++)
        if (order_rules[i].consequence && !config_order_holds(&order_rules[i], config))
            describe_broken_config_order(&order_rules[i], config, &out[count++]);
    bool has_peers = config->peer.listen[0] != '\0' || config->peer.peers.count > 0;
    bool has_aggregators = config->state.aggregators.count > 0;
    bool has_kafka = slice_starts_with(slice_of(config->feed.url), SLICE("kafka"));
    count = add_config_warning(out, count, has_peers && config->peer.secret[0] == '\0',
                               "peer.secret is empty: peer links are off");
    count = add_config_warning(
        out, count,
        has_aggregators && slice_starts_with(slice_of(config->state.url), SLICE("redis")),
        "state.aggregators is set: state.url is not used, the aggregators connect to Redis");
    count = add_config_warning(
        out, count, has_kafka && config->durability.kafka.producer.acks != KAFKA_ACKS_ALL,
        "durability.kafka.producer.acks is not all: a message that was "
        "acknowledged may never reach the fan-out");
    count = add_config_warning(
        out, count, has_kafka && config->fanout.kafka.consumer.enable_auto_commit,
        "fanout.kafka.consumer.enable_auto_commit is true: events in flight at a "
        "crash are skipped");
    return count;
}
