#include "app/gateway/gateway_hooks.h"

static bool hook_is_configured(const char *url)
{
    return url[0] != '\0';
}

/* Questions are signed as webhooks are, with the same secret unless they have their own. */
static const char *choose_hook_secret_file(const struct config *config)
{
    const char *own = config->hooks.secret_file;
    return own[0] ? own : config->webhooks.secret_file;
}

const char *hook_parts_make(struct hook_parts *parts, const struct config *whole)
{
    const struct config_hooks *config = &whole->hooks;
    const char *secret_file = choose_hook_secret_file(whole);
    bool asks_events = hook_is_configured(config->event_url);
    bool asks_connects = hook_is_configured(config->connect_url);
    *parts = (struct hook_parts){0};
    if (asks_connects)
        parts->connect_gate = hook_gate_make("connect", config);
    if (asks_events)
        parts->event_gate = hook_gate_make("event", config);
    if ((asks_connects && !parts->connect_gate) || (asks_events && !parts->event_gate))
        return "out of memory";
    bool is_signed = (asks_connects || asks_events) && secret_file[0] != '\0';
    return is_signed ? webhook_secret_read(&parts->secret, secret_file) : NULL;
}

void hook_parts_free(struct hook_parts *parts)
{
    hook_gate_free(&parts->connect_gate);
    hook_gate_free(&parts->event_gate);
    webhook_secret_clear(&parts->secret);
}

static struct hook make_gateway_hook(const struct gateway_hooks *hooks,
                                     const struct hook_parts *parts,
                                     const struct session_context *sessions)
{
    const struct config_hooks *config = &sessions->config->hooks;
    return (struct hook){
        .ca_file = config->ca_file[0] ? config->ca_file : NULL,
        .signer = {.secret = &parts->secret},
        .time_limit_ms = config->timeout_ms,
        .client = hooks->client,
        .loop = sessions->loop,
        .random = sessions->random,
        .metrics = sessions->metrics,
    };
}

bool gateway_hooks_make(struct gateway_hooks *hooks, struct hook_parts *parts,
                        struct session_context *sessions, uint64_t hash_seed)
{
    const struct config_hooks *config = &sessions->config->hooks;
    if (!parts->connect_gate && !parts->event_gate)
        return true;
    hooks->client = http_client_make(sessions->loop, (size_t)config->in_flight_max * 2);
    if (!hooks->client)
        return false;
    hooks->connect = hooks->event = make_gateway_hook(hooks, parts, sessions);
    hooks->connect.name = "connect";
    hooks->connect.url = config->connect_url;
    hooks->connect.gate = parts->connect_gate;
    hooks->event.name = "event";
    hooks->event.url = config->event_url;
    hooks->event.gate = parts->event_gate;
    if (parts->connect_gate)
        sessions->connect_hook = &hooks->connect;
    if (parts->event_gate)
        sessions->event_hook = &hooks->events;
    return event_hook_init(&hooks->events, &hooks->event, config->in_flight_max, hash_seed);
}

static bool gateway_hook_is_shut(const struct hook *hook)
{
    return hook->gate && hook_gate_is_shut(hook->gate, hook->loop->clock.now_ms);
}

void gateway_hooks_sample(const struct gateway_hooks *hooks)
{
    if (hooks->client)
        metrics_set(hooks->event.metrics, METRIC_HOOKS_BREAKER_OPEN,
                    gateway_hook_is_shut(&hooks->connect) || gateway_hook_is_shut(&hooks->event));
}

void gateway_hooks_close(struct gateway_hooks *hooks)
{
    hooks->connect.closed = hooks->event.closed = true;
    http_client_free(&hooks->client);
}

void gateway_hooks_free(struct gateway_hooks *hooks)
{
    event_hook_free(&hooks->events);
    webhook_signer_free(&hooks->connect.signer);
    webhook_signer_free(&hooks->event.signer);
}
