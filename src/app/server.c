#include "app/server.h"

#include "app/dead_letter_watch.h"
#include "app/server_parts.h"
#include "config/address.h"
#include "feed/kafka/kafka_client.h"
#include "log/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct server;

struct gateway_thread {
    pthread_t id;
    struct server *server;
    struct gateway *gateway;
};

struct server {
    const struct config *config;
    struct server_parts parts;
    struct gateway *gateways[SERVER_PARTS_WORKERS_MAX];
    struct gateway_thread threads[SERVER_PARTS_WORKERS_MAX];
    struct dead_letter_watch *dead_letters; /* NULL: the gateways consume no feed on Kafka */
    bool signalled;                         /* by SIGTERM or SIGINT */
    bool address_printed;
    atomic_bool drain_ordered;   /* by an administrator, or because a gateway was refused */
    atomic_size_t claimed_count; /* gateways that have claimed their id */
    atomic_size_t running_count; /* gateways that have not stopped */
    atomic_bool refused;
};

/* ---- callbacks of gateways ---- */

/* Any number of orders is one drain: only a second signal ends the process at once. */
static void on_server_drain_ordered(void *arg)
{
    struct server *server = arg;
    if (!atomic_exchange(&server->drain_ordered, true))
        kill(getpid(), SIGUSR1);
}

/* A gateway whose id is taken ends the process in order. */
static void on_gateway_claim_settled(void *arg, const char *refusal)
{
    struct server *server = arg;
    if (!refusal &&
        atomic_fetch_add(&server->claimed_count, 1) + 1 == server->parts.gateway.workers)
        kill(getpid(), SIGUSR1);
    if (refusal && !atomic_exchange(&server->refused, true)) {
        server_parts_fail("start", refusal);
        on_server_drain_ordered(server);
    }
}

/* ---- gateways ---- */

/* The caller holds the mutex of the keys. `tls` is NULL: it stays as it is. */
static bool give_to_gateways(struct server *server, struct tls_context *tls)
{
    struct key_set *keys = server_keys_unite(&server->parts.keys);
    bool given = true;
    for (size_t i = 0; i < server->parts.gateway.workers && (keys || tls); i++)
        given &= gateway_use(server->gateways[i], keys ? key_set_share(keys) : NULL,
                             tls ? tls_context_share(tls) : NULL);
    key_set_release(&keys);
    return given;
}

static bool give_keys_to_gateways(struct server *server)
{
    pthread_mutex_lock(&server->parts.keys.mutex);
    bool given = give_to_gateways(server, server->parts.tls);
    pthread_mutex_unlock(&server->parts.keys.mutex);
    return given;
}

/* On the issuer's thread, after each fetch. Tokens may wait for it, so it is told also if nothing has changed. */
static void on_issuer_keys(void *arg, struct key_set *issued)
{
    struct server *server = arg;
    pthread_mutex_lock(&server->parts.keys.mutex);
    server_keys_put_issued(&server->parts.keys, issued);
    if (!give_to_gateways(server, NULL))
        log_warn("issuer_keys_not_given", "hint=%s",
                 log_sentence(SLICE("a worker is overloaded: the next fetch gives them again")));
    pthread_mutex_unlock(&server->parts.keys.mutex);
}

static bool on_keys_wanted(void *arg)
{
    struct server *server = arg;
    issuer_ask(server->parts.keys.issuer);
    return true;
}

/* The threads count down as they stop, because a second signal could not interrupt joining them. */
static void *run_gateway_thread(void *arg)
{
    struct gateway_thread *thread = arg;
    gateway_run(thread->gateway);
    if (atomic_fetch_sub(&thread->server->running_count, 1) == 1)
        kill(getpid(), SIGUSR1);
    return NULL;
}

/* Makes all gateways before the first one runs. */
static bool start_gateways(struct server *server)
{
    char error[GATEWAY_ERROR_TEXT_MAX];
    uint16_t port = 0;
    for (size_t i = 0; i < server->parts.gateway.workers; i++) {
        server->gateways[i] = gateway_make(&server->parts.gateway, i);
        if (!server->gateways[i])
            return server_parts_fail("start", "out of memory or descriptors");
    }
    for (size_t i = 0; i < server->parts.gateway.workers; i++) {
        if (!gateway_listen(server->gateways[i], port, error))
            return server_parts_fail("listen", error);
        port = gateway_port(server->gateways[0]); /* with port 0 the first one chooses */
    }
    if (!give_keys_to_gateways(server))
        return false;
    gateway_open_control(server->gateways[0]);
    atomic_store(&server->running_count, server->parts.gateway.workers);
    for (size_t i = 0; i < server->parts.gateway.workers; i++) {
        struct gateway_thread *thread = &server->threads[i];
        thread->server = server;
        thread->gateway = server->gateways[i];
        if (pthread_create(&thread->id, NULL, run_gateway_thread, thread) != 0)
            return server_parts_fail("start", "cannot create a thread");
    }
    return true;
}

static void print_server_url(const struct server *server, const char *what, const char *listen,
                             uint16_t port, const char *note)
{
    struct address address;
    address_parse(slice_of(listen), &address);
    printf("rollcall: %s %s://%s%.*s%s:%u/%s\n", what, server->parts.tls ? "https" : "http",
           address.is_ipv6 ? "[" : "", SLICE_FORMAT(address.host), address.is_ipv6 ? "]" : "", port,
           note);
}

/* Prints the addresses once, when all gateways run. */
static void print_address_when_started(struct server *server)
{
    const struct config *config = server->config;
    const struct fleet *fleet = server->parts.gateway.fleet;
    const struct gateway *first = server->gateways[0];
    bool all_run = atomic_load(&server->claimed_count) == server->parts.gateway.workers;
    if (!all_run || server->address_printed || atomic_load(&server->refused))
        return;
    server->address_printed = true;
    log_info("serving", "node=%s workers=%zu port=%u", log_quote(slice_of(config->gateway.node_id)),
             server->parts.gateway.workers, gateway_port(first));
    bool is_waiting = fleet && atomic_load(&fleet->is_waiting);
    print_server_url(server, "open", config->gateway.listen, gateway_port(first),
                     is_waiting ? " when Redis answers" : "");
    if (config->ops.listen[0])
        print_server_url(server, "operations at", config->ops.listen,
                         gateway_operations_port(first), "");
    fflush(stdout);
}

/* ---- signals ---- */

static void block_server_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1); /* from this process: see on_server_woken() */
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit returns an error instead */
}

static void reload_server(struct server *server)
{
    bool whole = server_parts_reload(&server->parts);
    if (!give_keys_to_gateways(server))
        log_error(
            "not_reloaded_everywhere", "hint=%s",
            log_sentence(SLICE("a worker is overloaded or out of memory: send SIGHUP again")));
    else if (whole)
        log_info("reloaded", "keys=%zu", server_keys_count(&server->parts.keys));
}

static void drain_gateways(struct server *server)
{
    for (size_t i = 0; i < server->parts.gateway.workers; i++)
        gateway_drain(server->gateways[i]);
}

/* All gateways run, or have stopped, which serve_signals() checks, or a drain was ordered. */
static void on_server_woken(struct server *server)
{
    print_address_when_started(server);
    if (atomic_load(&server->drain_ordered))
        drain_gateways(server);
}

/* Completions of one gateway may send mail to another. */
static void finish_gateways(struct server *server)
{
    bool had_work = true;
    while (had_work) {
        had_work = false;
        for (size_t i = 0; i < server->parts.gateway.workers; i++)
            had_work |= gateway_finish(server->gateways[i]);
    }
}

/* A thread that has stopped is detached first, because nothing will join it. */
static void exit_without_draining(const struct server *server)
{
    for (size_t i = 0; i < server->parts.gateway.workers; i++)
        pthread_detach(server->threads[i].id);
    _exit(1);
}

/* Returns when all gateways have stopped. */
static void serve_signals(struct server *server, const sigset_t *signals)
{
    while (atomic_load(&server->running_count) > 0) {
        int number = 0;
        sigwait(signals, &number);
        if (number == SIGHUP)
            reload_server(server);
        else if (number == SIGUSR1)
            on_server_woken(server);
        else if (server->signalled)
            exit_without_draining(server);
        else
            drain_gateways(server);
        server->signalled |= number == SIGTERM || number == SIGINT;
    }
    for (size_t i = 0; i < server->parts.gateway.workers; i++)
        pthread_join(server->threads[i].id, NULL);
}

/* Before the threads start, because it adds metrics. */
static bool watch_server_dead_letters(struct server *server)
{
    const struct config *config = server->config;
    if (!kafka_client_brokers(config) || !config->fanout.in_gateway)
        return true;
    server->dead_letters = dead_letter_watch_start(config, server->parts.gateway.exposition);
    return server->dead_letters || server_parts_fail("start", "cannot create a thread");
}

int server_run(const struct config *config)
{
    /* A start that fails frees nothing: leak checkers find it here, where the compiler may not remove it. */
    static struct server *volatile made;
    struct server *server = made = calloc(1, sizeof(*server));
    sigset_t signals;
    if (!server)
        return !server_parts_fail("start", "out of memory");
    server->config = config;
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    block_server_signals(&signals);
    if (!server_parts_make(&server->parts, config))
        return 1;
    server->parts.gateway.drain = on_server_drain_ordered;
    server->parts.gateway.drain_arg = server;
    server->parts.gateway.on_claimed = on_gateway_claim_settled;
    server->parts.gateway.on_claimed_arg = server;
    if (!server_keys_make_issuer(&server->parts.keys, config, on_issuer_keys, server))
        return !server_parts_fail("start", "out of memory or descriptors");
    if (server->parts.keys.issuer) {
        server->parts.gateway.on_keys_wanted = on_keys_wanted;
        server->parts.gateway.on_keys_wanted_arg = server;
        exposition_add(server->parts.gateway.exposition, &server->parts.keys.issuer_metrics);
    }
    if (!watch_server_dead_letters(server) || !start_gateways(server))
        return 1;
    if (server->parts.keys.issuer && !issuer_start(server->parts.keys.issuer))
        return !server_parts_fail("start", "cannot create a thread");
    serve_signals(server, &signals);
    issuer_free(&server->parts.keys.issuer);     /* it gives keys to gateways */
    ledger_close(&server->parts.gateway.ledger); /* completes what gateways wait for */
    finish_gateways(server);
    for (size_t i = 0; i < server->parts.gateway.workers; i++)
        gateway_free(&server->gateways[i]);
    dead_letter_watch_free(&server->dead_letters);
    server_parts_free(&server->parts);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    int status = atomic_load(&server->refused);
    free(server);
    made = NULL;
    return status;
}
