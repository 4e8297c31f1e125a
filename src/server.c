#include "server.h"

#include "auth/dev_keys.h"
#include "base/log.h"
#include "config/address.h"
#include "gateway.h"
#include "ledger/breaker_ledger.h"
#include "ledger_choice.h"
#include "rest/handover.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors that are no clients: epoll, event and log descriptors, the ledger's files. */
enum { DESCRIPTORS_RESERVED = 128, WORKERS_MAX = METRICS_WORKERS_MAX };

struct server {
    const struct config *config;
    struct gateway_parts parts;
    struct gateway *gateways[WORKERS_MAX];
    pthread_t threads[WORKERS_MAX];
    struct key_set *keys;
    struct tls_context *tls;
    struct jwt_signer *signer;
    char keys_file[PATH_MAX];
    pthread_t joiner;
    bool draining;
    bool said_where;
    atomic_size_t claimed; /* gateways whose ids are theirs */
    atomic_bool refused;
    atomic_bool stopped;
};

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "rollcall: %s: %s\n", what, why);
    return false;
}

/* ---- what is shared ---- */

/* As many descriptors as the system lets us have, and a line that says what that allows. */
static size_t raise_descriptor_limit(const struct config *config)
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
    log_info("descriptor_limit", "descriptors=%llu connections_max=%zu hint=%s",
             (unsigned long long)limit.rlim_cur, connections,
             log_quote(slice_of(wanted > allowed
                                    ? "fewer than max_connections: raise LimitNOFILE or start "
                                      "several processes on this port"
                                    : "several processes may share this port")));
    return connections;
}

static bool make_directory(const char *path)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ||
           fail(path, "cannot make the data directory");
}

static bool load_keys(struct server *server)
{
    const struct config *config = server->config;
    struct auth_error error;
    struct dev_keys dev_keys;
    snprintf(server->keys_file, sizeof(server->keys_file), "%s", config->auth.keys_file);
    if (config->auth.dev) {
        if (!dev_keys_ensure(config->data_dir, &dev_keys, &error))
            return fail("dev keys", error.text);
        server->signer = jwt_signer_load(dev_keys.private_path, &error);
        if (!server->signer)
            return fail("dev keys", error.text);
        if (!server->keys_file[0])
            snprintf(server->keys_file, sizeof(server->keys_file), "%s", dev_keys.public_path);
    }
    server->keys = key_set_load(server->keys_file, &error);
    return server->keys || fail("keys", error.text);
}

static bool load_tls(struct server *server)
{
    char error[TLS_ERROR_TEXT_MAX];
    if (!server->config->gateway.tls.certificate_file[0])
        return true;
    server->tls = tls_context_load(server->config->gateway.tls.certificate_file,
                                   server->config->gateway.tls.key_file, error);
    return server->tls || fail("TLS", error);
}

static int64_t monotonic_ms(void)
{
    return clock_microseconds() / 1000;
}

/* The breaker stands before the ledger of all gateways: what one of them finds out, all know. */
static bool guard_ledger(struct server *server, struct ledger *ledger)
{
    const struct config_circuit_breaker *config = &server->config->gateway.circuit_breaker;
    struct breaker_limits limits = {
        .failure_threshold = config->failure_threshold,
        .probe_count = config->half_open_probe_count,
        .failure_window_ms = config->failure_window_ms,
        .open_duration_ms = config->open_duration_ms,
    };
    server->parts.ledger = breaker_ledger_make(ledger, &limits, monotonic_ms);
    return server->parts.ledger || fail("start", "out of memory");
}

static bool open_ledger(struct server *server)
{
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    struct ledger *ledger = ledger_choice_open(server->config, error);
    return ledger ? guard_ledger(server, ledger) : fail("ledger", error);
}

/* A process on its own keeps all state itself; one of a fleet finds it in Redis. */
static bool make_state(struct server *server)
{
    const struct config *config = server->config;
    char error[FLEET_ERROR_TEXT_MAX] = "out of memory";
    if (slice_is(slice_of(config->state.url), "memory"))
        server->parts.embedded =
            embedded_make(config, server->parts.hash_seed, server->parts.started_at_ms);
    else
        server->parts.fleet = fleet_make(config, error);
    server->parts.exchange = mailbox_exchange_make(server->parts.workers, server->parts.hash_seed);
    server->parts.exposition = calloc(1, sizeof(struct exposition));
    return ((server->parts.embedded || server->parts.fleet) && server->parts.exchange &&
            server->parts.exposition && server->parts.board) ||
           fail("start", error);
}

/* The drain of an administrator takes the same way as a signal. */
static void drain_by_signal(void *arg)
{
    (void)arg;
    kill(getpid(), SIGTERM);
}

/* What the configuration may name and this build does not have is refused, never ignored. */
static bool check_backends(const struct config *config)
{
    if (!slice_is(slice_of(config->feed.url), "local"))
        return fail(config->feed.url, "this build has the feed \"local\" only");
    bool has_links = config->peer.listen[0] || config->peer.peers.count;
    if (has_links && slice_is(slice_of(config->state.url), "memory"))
        log_warn("peer_links_off", "reason=%s",
                 log_quote(SLICE("a state store in memory is one process's own: peer.listen and "
                                 "peer.peers have no effect")));
    return true;
}

/* A gateway that may not be who it is called takes the process with it, in good order. */
static void claimed(void *arg, const char *refusal)
{
    struct server *server = arg;
    if (!refusal && atomic_fetch_add(&server->claimed, 1) + 1 == server->parts.workers)
        kill(getpid(), SIGUSR1);
    if (refusal && !atomic_exchange(&server->refused, true)) {
        fail("start", refusal);
        kill(getpid(), SIGTERM);
    }
}

static size_t count_workers(const struct config *config)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t workers = config->gateway.workers ? config->gateway.workers : (size_t)cores;
    return workers < WORKERS_MAX ? workers : WORKERS_MAX;
}

static bool make_parts(struct server *server)
{
    struct clock clock;
    struct random random;
    clock_advance(&clock);
    random_init_system(&random);
    server->parts = (struct gateway_parts){
        .config = server->config,
        .workers = count_workers(server->config),
        .started_at_ms = clock.wall_ms,
        .hash_seed = random_u64(&random),
        .board = handover_board_make(count_workers(server->config), (uint32_t)random_u64(&random)),
        .drain = drain_by_signal,
        .claimed = claimed,
        .claimed_arg = server,
    };
    size_t connections_max = raise_descriptor_limit(server->config);
    server->parts.connections_max =
        (connections_max + server->parts.workers - 1) / server->parts.workers;
    if (!check_backends(server->config) || !make_directory(server->config->data_dir) ||
        !load_keys(server) || !load_tls(server) || !make_state(server) || !open_ledger(server))
        return false;
    exposition_init(server->parts.exposition, clock.now_ms, clock.wall_ms);
    server->parts.dev_signer = server->signer;
    return true;
}

/* ---- gateways ---- */

static bool use_everywhere(struct server *server)
{
    bool given = true;
    for (size_t i = 0; i < server->parts.workers; i++)
        given &= gateway_use(server->gateways[i], key_set_share(server->keys),
                             server->tls ? tls_context_share(server->tls) : NULL);
    return given;
}

static bool make_gateways(struct server *server)
{
    char error[GATEWAY_ERROR_TEXT_MAX];
    uint16_t port = 0;
    for (size_t i = 0; i < server->parts.workers; i++) {
        server->gateways[i] = gateway_make(&server->parts, i);
        if (!server->gateways[i])
            return fail("start", "out of memory or descriptors");
    }
    for (size_t i = 0; i < server->parts.workers; i++) {
        if (!gateway_listen(server->gateways[i], port, error))
            return fail("listen", error);
        port = gateway_port(server->gateways[0]); /* the first may have chosen any */
    }
    return use_everywhere(server);
}

static void *run_gateway(void *arg)
{
    gateway_run(arg);
    return NULL;
}

static bool start_threads(struct server *server)
{
    for (size_t i = 0; i < server->parts.workers; i++)
        if (pthread_create(&server->threads[i], NULL, run_gateway, server->gateways[i]) != 0)
            return fail("start", "cannot make a thread");
    return true;
}

static void say_where(struct server *server)
{
    struct address address;
    const struct config *config = server->config;
    server->said_where = true;
    log_info("serving", "node=%s workers=%zu port=%u", log_quote(slice_of(config->gateway.node_id)),
             server->parts.workers, gateway_port(server->gateways[0]));
    address_parse(slice_of(config->gateway.listen), &address);
    printf("rollcall: open %s://%s%.*s%s:%u/\n", server->tls ? "https" : "http",
           address.is_ipv6 ? "[" : "", SLICE_FORMAT(address.host), address.is_ipv6 ? "]" : "",
           gateway_port(server->gateways[0]));
    fflush(stdout);
}

/* ---- signals ---- */

static void block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1); /* from ourselves: all gateways are there, or have stopped */
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write */
}

static void reload(struct server *server)
{
    struct auth_error error;
    char tls_error[TLS_ERROR_TEXT_MAX];
    struct key_set *keys = key_set_load(server->keys_file, &error);
    struct tls_context *tls = NULL;
    if (!keys)
        log_error("keys_not_reloaded", "error=%s", log_quote(slice_of(error.text)));
    if (server->tls) {
        tls = tls_context_load(server->config->gateway.tls.certificate_file,
                               server->config->gateway.tls.key_file, tls_error);
        if (!tls)
            log_error("tls_not_reloaded", "error=%s", log_quote(slice_of(tls_error)));
    }
    if (keys) {
        key_set_release(&server->keys);
        server->keys = keys;
    }
    if (tls) {
        tls_context_drop(&server->tls);
        server->tls = tls;
    }
    if (use_everywhere(server) && keys && (tls || !server->tls))
        log_info("reloaded", "keys=%zu", key_set_count(server->keys));
}

/* Runs beside the main thread, which waits for a second signal meanwhile. */
static void *join_gateways(void *arg)
{
    struct server *server = arg;
    for (size_t i = 0; i < server->parts.workers; i++)
        pthread_join(server->threads[i], NULL);
    atomic_store(&server->stopped, true);
    kill(getpid(), SIGUSR1);
    return NULL;
}

static void drain_all(struct server *server)
{
    for (size_t i = 0; i < server->parts.workers; i++)
        gateway_drain(server->gateways[i]);
    if (pthread_create(&server->joiner, NULL, join_gateways, server) != 0)
        _exit(1);
    server->draining = true;
}

/* All gateways are there, for the first time; or they have stopped, which the loop sees. */
static void note_progress(struct server *server)
{
    bool all_there = atomic_load(&server->claimed) == server->parts.workers;
    if (all_there && !server->said_where && !atomic_load(&server->refused))
        say_where(server);
}

/* Returns when all gateways have stopped. */
static void serve_signals(struct server *server, const sigset_t *signals)
{
    while (!atomic_load(&server->stopped)) {
        int number = 0;
        sigwait(signals, &number);
        if (number == SIGHUP)
            reload(server);
        else if (number == SIGUSR1)
            note_progress(server);
        else if (!server->draining)
            drain_all(server);
        else
            _exit(1);
    }
    pthread_join(server->joiner, NULL);
}

static void free_parts(struct server *server)
{
    ledger_close(&server->parts.ledger);
    for (size_t i = 0; i < server->parts.workers; i++)
        gateway_free(&server->gateways[i]);
    mailbox_exchange_free(&server->parts.exchange);
    handover_board_free(&server->parts.board);
    embedded_free(&server->parts.embedded);
    fleet_free(&server->parts.fleet);
    exposition_free(server->parts.exposition);
    free(server->parts.exposition);
    key_set_release(&server->keys);
    tls_context_drop(&server->tls);
    jwt_signer_free(&server->signer);
}

int server_run(const struct config *config)
{
    static struct server server; /* one per process, too large for a stack */
    sigset_t signals;
    server.config = config;
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    block_signals(&signals);
    if (!make_parts(&server) || !make_gateways(&server) || !start_threads(&server))
        return 1;
    serve_signals(&server, &signals);
    free_parts(&server);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return atomic_load(&server.refused);
}
