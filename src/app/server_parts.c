#include "app/server_parts.h"

#include "app/ledger_choice.h"
#include "auth/keys/dev_keys.h"
#include "feed/kafka/kafka_topics.h"
#include "log/log.h"
#include "socketio/handover.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors for other uses than clients: epoll, eventfd, log, the files of the ledger. */
enum { DESCRIPTORS_RESERVED = 128 };

bool server_parts_fail(const char *what, const char *why)
{
    fprintf(stderr, "rollcall: %s: %s\n", what, why);
    return false;
}

bool server_parts_fail_directory(const char *path)
{
    char why[PATH_MAX + 128];
    snprintf(why, sizeof(why), "%s: %s: create it, or name another one with --data-dir", path,
             strerror(errno));
    return server_parts_fail("cannot create the data directory", why);
}

/* ---- system ---- */

/* Raises the limit as far as the system allows and logs how many connections that permits. */
static size_t raise_server_descriptor_limit(const struct config *config)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    size_t allowed =
        limit.rlim_cur > DESCRIPTORS_RESERVED ? (size_t)limit.rlim_cur - DESCRIPTORS_RESERVED : 1;
    size_t wanted = config->gateway.max_connections;
    size_t connections = wanted && wanted < allowed ? wanted : allowed;
    unsigned long long descriptors = limit.rlim_cur;
    if (wanted > allowed)
        log_warn("descriptor_limit", "descriptors=%llu connections_max=%zu hint=%s", descriptors,
                 connections,
                 log_sentence(SLICE(
                     "fewer than max_connections: raise LimitNOFILE or start several processes "
                     "with gateway.share_port")));
    else
        log_info("descriptor_limit", "descriptors=%llu connections_max=%zu", descriptors,
                 connections);
    return connections;
}

/* ---- keys and certificates ---- */

static bool load_server_keys(struct server_parts *parts)
{
    const struct config *config = parts->config;
    struct auth_error error;
    struct dev_keys dev_keys = {.public_path = ""};
    if (config->auth.dev) {
        if (!dev_keys_ensure(config->data_dir, &dev_keys, &error))
            return server_parts_fail("dev keys", error.text);
        parts->signer = jwt_signer_load(dev_keys.private_path, &error);
        if (!parts->signer)
            return server_parts_fail("dev keys", error.text);
    }
    return server_keys_load(&parts->keys, config, dev_keys.public_path, &error) ||
           server_parts_fail("keys", error.text);
}

static bool load_server_tls(struct server_parts *parts)
{
    char error[TLS_ERROR_TEXT_MAX];
    if (!parts->config->gateway.tls.certificate_file[0])
        return true;
    parts->tls = tls_context_load(parts->config->gateway.tls.certificate_file,
                                  parts->config->gateway.tls.key_file, error);
    return parts->tls || server_parts_fail("TLS (gateway.tls.certificate_file, key_file)", error);
}

static bool reload_server_keys(struct server_parts *parts)
{
    struct auth_error error;
    if (server_keys_reload(&parts->keys, &error))
        return true;
    log_error("keys_not_reloaded", "error=%s", log_sentence(slice_of(error.text)));
    return false;
}

static bool reload_server_tls(struct server_parts *parts)
{
    char error[TLS_ERROR_TEXT_MAX];
    const struct config_gateway *config = &parts->config->gateway;
    if (!parts->tls)
        return true;
    struct tls_context *tls =
        tls_context_load(config->tls.certificate_file, config->tls.key_file, error);
    if (!tls) {
        log_error("tls_not_reloaded", "error=%s", log_sentence(slice_of(error)));
        return false;
    }
    tls_context_drop(&parts->tls);
    parts->tls = tls;
    return true;
}

bool server_parts_reload(struct server_parts *parts)
{
    bool keys = reload_server_keys(parts);
    return reload_server_tls(parts) && keys;
}

/* ---- ledger and state ---- */

static bool open_server_ledger(struct server_parts *parts)
{
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    parts->gateway.ledger = ledger_choice_open_with_breaker(parts->config, error);
    return parts->gateway.ledger || server_parts_fail("ledger", error);
}

static bool is_server_alone(const struct config *config)
{
    return slice_is(slice_of(config->state.url), "memory") && config->state.aggregators.count == 0;
}

/* A single process keeps its state in memory; a process of a fleet keeps it in Redis. */
static bool make_server_state(struct server_parts *parts)
{
    const struct config *config = parts->config;
    char error[FLEET_ERROR_TEXT_MAX] = "out of memory";
    if (is_server_alone(config))
        parts->gateway.embedded =
            embedded_make(config, parts->gateway.hash_seed, parts->gateway.started_at_ms);
    else
        parts->gateway.fleet = fleet_make(config, slice_of(config->gateway.node_id), error);
    parts->gateway.bus_group =
        mailbox_bus_group_make(parts->gateway.workers, parts->gateway.hash_seed);
    parts->gateway.exposition = calloc(1, sizeof(struct exposition));
    return (parts->gateway.budget && (parts->gateway.embedded || parts->gateway.fleet) &&
            parts->gateway.bus_group && parts->gateway.exposition && parts->gateway.board) ||
           server_parts_fail("start", error);
}

/* Without brokers the server starts all the same: presence and connections do not need them. */
static bool check_server_topics(const struct config *config)
{
    char error[KAFKA_CLIENT_ERROR_TEXT_MAX];
    switch (kafka_topics_check(config, NULL, error)) {
    case KAFKA_TOPICS_WRONG:
        return server_parts_fail("feed", error);
    case KAFKA_TOPICS_NO_BROKERS:
        log_warn("kafka_unavailable", "error=%s", log_sentence(slice_of(error)));
        break;
    case KAFKA_TOPICS_OK:
        break;
    }
    return true;
}

static bool check_server_backends(const struct config *config)
{
    if (kafka_client_brokers(config) && !check_server_topics(config))
        return false;
    bool has_links = config->peer.listen[0] || config->peer.peers.count;
    if (has_links && is_server_alone(config))
        log_warn(
            "peer_links_off", "reason=%s",
            log_sentence(SLICE("a state store in memory belongs to one process: peer.listen and "
                               "peer.peers have no effect")));
    return true;
}

/* ---- addresses ---- */

static bool make_server_addresses(struct server_parts *parts)
{
    const struct config_list *proxies = &parts->config->gateway.trusted_proxies;
    uint32_t max = parts->config->limits.connections_per_address;
    struct ip_network networks[CONFIG_LIST_ITEMS_MAX];
    if (max == 0 && proxies->count == 0)
        return true;
    for (size_t i = 0; i < proxies->count; i++)
        ip_network_parse(slice_of(proxies->items[i]), &networks[i]);
    parts->gateway.addresses =
        client_addresses_make(max, networks, proxies->count, parts->gateway.hash_seed);
    return parts->gateway.addresses || server_parts_fail("addresses", "out of memory");
}

/* ---- questions to the application ---- */

static bool make_server_hooks(struct server_parts *parts)
{
    const char *problem = hook_parts_make(&parts->hooks, parts->config);
    parts->gateway.hooks = &parts->hooks;
    if (problem)
        return server_parts_fail("hooks.secret_file", problem);
    const char *ca_file = parts->config->hooks.ca_file;
    if (ca_file[0] && access(ca_file, R_OK) != 0)
        return server_parts_fail("hooks.ca_file", "cannot read the file");
    if ((parts->hooks.connect_gate || parts->hooks.event_gate) && !parts->hooks.secret.len)
        log_warn("hooks_not_signed", "hint=%s",
                 log_sentence(SLICE("set hooks.secret_file, so that the application can tell who "
                                    "asks")));
    return true;
}

/* ---- webhooks ---- */

static bool make_server_webhooks(struct server_parts *parts)
{
    char error[WEBHOOK_ERROR_TEXT_MAX];
    parts->gateway.webhooks = &parts->webhooks;
    return webhook_endpoints_init(&parts->webhooks, parts->config, error) ||
           server_parts_fail("webhooks", error);
}

/* ---- making and freeing ---- */

bool server_parts_make(struct server_parts *parts, const struct config *config)
{
    struct clock clock;
    struct random random;
    size_t workers =
        config->gateway.workers ? config->gateway.workers : (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    if (workers > SERVER_PARTS_WORKERS_MAX)
        workers = SERVER_PARTS_WORKERS_MAX;
    size_t connections_max = raise_server_descriptor_limit(config);
    clock_advance(&clock);
    random_init_system(&random);
    *parts = (struct server_parts){.config = config};
    parts->gateway = (struct gateway_parts){
        .config = config,
        .workers = workers,
        .connections_max = (connections_max + workers - 1) / workers,
        .started_at_ms = clock.wall_ms,
        .hash_seed = random_u64(&random),
        .budget = memory_budget_make(random_u64(&random)),
        .board = handover_board_make(workers, (uint32_t)random_u64(&random)),
    };
    if (!check_server_backends(config))
        return false;
    if (mkdir(config->data_dir, 0700) != 0 && errno != EEXIST)
        return server_parts_fail_directory(config->data_dir);
    parts->gateway.memory = &parts->memory;
    if (!make_server_webhooks(parts) || !make_server_addresses(parts) || !load_server_keys(parts) ||
        !load_server_tls(parts) || !make_server_hooks(parts) || !make_server_state(parts) ||
        !open_server_ledger(parts))
        return false;
    exposition_init(parts->gateway.exposition, clock.now_ms, clock.wall_ms);
    parts->gateway.dev_signer = parts->signer;
    return true;
}

void server_parts_free(struct server_parts *parts)
{
    mailbox_bus_group_free(&parts->gateway.bus_group);
    handover_board_free(&parts->gateway.board);
    client_addresses_free(&parts->gateway.addresses);
    hook_parts_free(&parts->hooks);
    memory_budget_free(&parts->gateway.budget);
    embedded_free(&parts->gateway.embedded);
    fleet_free(&parts->gateway.fleet);
    exposition_free(parts->gateway.exposition);
    free(parts->gateway.exposition);
    webhook_endpoints_clear(&parts->webhooks);
    server_keys_free(&parts->keys);
    tls_context_drop(&parts->tls);
    jwt_signer_free(&parts->signer);
}
