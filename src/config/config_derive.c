#include "config/config_derive.h"

#include "config/config_assign.h"

/* A page reload takes less, so others do not see it. */
enum { DEV_OFFLINE_GRACE_MS = 3000 };

struct timing {
    int64_t interval_ms;
    int64_t timeout_ms;
    int64_t window_ms;
};

static const struct timing timings[] = {
    [TIMING_REALTIME] = {5000, 10000, 15000},
    [TIMING_STANDARD] = {30000, 40000, 45000},
    [TIMING_RELAXED] = {30000, 60000, 90000},
};

static uint32_t larger_rate(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void derive_timing(struct config *config)
{
    const struct timing *profile = &timings[config->timing.profile];
    int64_t *interval_ms = &config->gateway.timeouts.heartbeat_interval_ms;
    int64_t *timeout_ms = &config->gateway.timeouts.heartbeat_timeout_ms;
    int64_t *window_ms = &config->presence.expiry_window_ms;
    bool has_interval = setting_is_explicit(config, "gateway.timeouts.heartbeat_interval_seconds");
    bool has_timeout = setting_is_explicit(config, "gateway.timeouts.heartbeat_timeout_seconds");
    bool has_window = setting_is_explicit(config, "presence.expiry_window_seconds");
    if (!has_timeout) {
        *timeout_ms = profile->timeout_ms;
        if (has_interval && *interval_ms >= *timeout_ms)
            *timeout_ms = 2 * *interval_ms;
        if (has_window && *timeout_ms > *window_ms)
            *timeout_ms = *window_ms - *window_ms / 3;
    }
    if (!has_window)
        *window_ms =
            *timeout_ms > profile->window_ms ? *timeout_ms + *timeout_ms / 2 : profile->window_ms;
    if (!has_interval)
        *interval_ms =
            profile->interval_ms < *timeout_ms ? profile->interval_ms : (*timeout_ms + 1) / 2;
}

static void derive_rates(struct config *config)
{
    struct config_inbound *inbound = &config->gateway.backpressure.inbound;
    if (!setting_is_explicit(config, "gateway.backpressure.inbound.rate_limit_burst"))
        inbound->rate_limit_burst =
            larger_rate(inbound->rate_limit_burst, inbound->rate_limit_per_second);
    if (!setting_is_explicit(config, "gateway.backpressure.inbound.command_rate_per_second"))
        inbound->command_rate_per_second =
            larger_rate(inbound->command_rate_per_second, inbound->rate_limit_per_second);
    if (!setting_is_explicit(config, "gateway.backpressure.inbound.command_rate_burst"))
        inbound->command_rate_burst =
            larger_rate(inbound->command_rate_burst,
                        larger_rate(inbound->command_rate_per_second, inbound->rate_limit_burst));
}

/* A smaller rate brings the burst down to what it allows in one period, a larger one raises it in proportion. */
static void fit_burst(const struct config *config, const char *name, uint32_t count,
                      uint32_t usual_count, uint32_t *burst)
{
    if (setting_is_explicit(config, name) || count == 0)
        return;
    uint64_t raised = (uint64_t)*burst * count / usual_count;
    if (count > usual_count)
        *burst = raised < CONFIG_COUNT_MAX ? (uint32_t)raised : CONFIG_COUNT_MAX;
    else if (count < usual_count && count < *burst)
        *burst = count;
}

/* What a connection may do is never more than its user may do, unless somebody said so. */
static void derive_limits(struct config *config)
{
    const struct config_inbound *inbound = &config->gateway.backpressure.inbound;
    struct config_limits *limits = &config->limits;
    if (!setting_is_explicit(config, "limits.messages_per_second_per_user"))
        limits->messages_per_second_per_user =
            larger_rate(limits->messages_per_second_per_user, inbound->rate_limit_per_second);
    if (!setting_is_explicit(config, "limits.reads_per_second_per_user"))
        limits->reads_per_second_per_user =
            larger_rate(limits->reads_per_second_per_user, inbound->command_rate_per_second);
    if (!setting_is_explicit(config, "limits.signals_per_second_per_user"))
        limits->signals_per_second_per_user =
            larger_rate(limits->signals_per_second_per_user, inbound->command_rate_per_second);
#define FIT_BURST(name, usual_count)                                                               \
    fit_burst(config, "limits." #name "_burst", limits->name, (usual_count), &limits->name##_burst)
    FIT_BURST(messages_per_second_per_user, 30);
    FIT_BURST(rest_per_second_per_user, 50);
    FIT_BURST(contact_requests_per_hour, 60);
    FIT_BURST(chats_per_hour, 60);
    FIT_BURST(settings_per_minute, 30);
    FIT_BURST(reads_per_second_per_user, 100);
    FIT_BURST(signals_per_second_per_user, 50);
    FIT_BURST(calls_per_minute, 30);
    FIT_BURST(service_per_second_per_key, 1000);
    FIT_BURST(events_per_second_per_user, 30);
#undef FIT_BURST
    if (!setting_is_explicit(config, "limits.messages_per_second_per_user_burst"))
        limits->messages_per_second_per_user_burst =
            larger_rate(limits->messages_per_second_per_user_burst,
                        setting_is_explicit(config, "limits.messages_per_second_per_user")
                            ? 0
                            : inbound->rate_limit_burst);
}

static void derive_thresholds(struct config *config)
{
    struct config_outbound *outbound = &config->gateway.backpressure.outbound;
    if (outbound->warning_threshold_percent < outbound->critical_threshold_percent)
        return;
    if (!setting_is_explicit(config, "gateway.backpressure.outbound.warning_threshold_percent"))
        outbound->warning_threshold_percent = outbound->critical_threshold_percent * 4 / 5;
    else if (!setting_is_explicit(config,
                                  "gateway.backpressure.outbound.critical_threshold_percent"))
        outbound->critical_threshold_percent = 100;
}

bool config_derive(struct config *config, const char *default_node_id, struct config_error *error)
{
    derive_timing(config);
    derive_rates(config);
    derive_limits(config);
    derive_thresholds(config);
    if (!setting_is_explicit(config, "auth.dev"))
        config->auth.dev = config->dev;
    if (config->dev && !setting_is_explicit(config, "presence.offline_grace_seconds"))
        config->presence.offline_grace_ms = DEV_OFFLINE_GRACE_MS;
    if (config->gateway.node_id[0] != '\0')
        return true;
    struct config_place place = {.source = CONFIG_FROM_DEFAULT, .label = "the default node id"};
    return config_assign(config, &place, setting_find(SLICE("gateway.node_id")),
                         slice_of(default_node_id ? default_node_id : "rollcall"), error);
}
