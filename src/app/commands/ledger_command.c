#include "app/commands/ledger_command.h"

#include "app/commands/ledger_pages.h"
#include "app/ledger_choice.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "ledger/remote/ledger_service.h"
#include "log/log.h"
#include "net/tls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, DRAIN_LIMIT_MS = LEDGER_TIME_LIMIT_MS, DRAIN_LOOK_MS = 20 };

struct ledger_process {
    const struct config *config;
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct tls_context *tls;
    struct ledger *ledger;
    struct ledger_service *service;
    struct ledger_pages *pages; /* NULL: none are asked for */
    struct loop_source signals; /* a signal descriptor */
    bool draining;
};

static bool fail(const char *what, const char *why)
{
    fprintf(stderr, "rollcall ledger: %s: %s\n", what, why);
    return false;
}

/* ---- signals ---- */

static void signalled(struct loop_source *source, uint32_t events)
{
    struct ledger_process *process = CONTAINER_OF(source, struct ledger_process, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (process->draining)
        _exit(EXIT_FAILED);
    process->draining = true;
}

/* Before there are threads, which inherit what is blocked. */
static bool take_signals(struct ledger_process *process)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of its write */
    process->signals = (struct loop_source){
        .fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), .ready = signalled};
    return (process->signals.fd >= 0 && loop_add_level(&process->loop, &process->signals)) ||
           fail("start", "no signal descriptor is to be had");
}

/* ---- parts ---- */

static bool make_loop(struct ledger_process *process)
{
    random_init_system(&process->random);
    return (loop_init(&process->loop) && stream_set_init(&process->streams, &process->loop)) ||
           fail("start", "out of memory or descriptors");
}

static bool load_tls(struct ledger_process *process)
{
    const struct config_peer *peer = &process->config->peer;
    char error[TLS_ERROR_TEXT_MAX];
    if (!peer->tls.certificate_file[0])
        return true;
    process->tls = tls_context_load(peer->tls.certificate_file, peer->tls.key_file, error);
    return process->tls || fail("peer.tls", error);
}

static bool open_ledger(struct ledger_process *process)
{
    const struct config *config = process->config;
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    if (ledger_choice_is_remote(config))
        return fail(config->ledger.url, "it is served here, so it must be sqlite:PATH");
    if (mkdir(config->data_dir, 0700) != 0 && errno != EEXIST)
        return fail(config->data_dir, "cannot make the data directory");
    process->ledger = ledger_choice_open(config, error);
    return process->ledger || fail("cannot open the ledger", error);
}

static bool listen_for_peers(struct ledger_process *process)
{
    const struct config *config = process->config;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct peer_link_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .random = &process->random,
        .secret = slice_of(config->peer.secret),
        .name = slice_of(config->gateway.node_id),
        .tls = process->tls,
    };
    process->service = ledger_service_open(&options, process->ledger, config->peer.listen, error);
    return process->service || fail("listen", error);
}

static bool show_pages(struct ledger_process *process)
{
    const char *address = process->config->ledger.http_listen;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct ledger_pages_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .config = process->config,
        .ledger = process->ledger,
        .service = process->service,
    };
    if (!address[0])
        return true;
    process->pages = ledger_pages_open(&options, address, error);
    return process->pages || fail("ledger.http_listen", error);
}

/* What there is; in an order that answers all that was asked. */
static void free_parts(struct ledger_process *process)
{
    ledger_pages_free(&process->pages);
    ledger_close(&process->ledger);
    ledger_service_free(&process->service);
    tls_context_drop(&process->tls);
    if (process->streams.loop)
        stream_set_free(&process->streams);
    if (process->signals.fd >= 0)
        close(process->signals.fd);
    if (process->loop.read_buffer)
        loop_free(&process->loop);
}

/* ---- running ---- */

/* With the port it got; the address was parsed. */
static void say_address(const char *what, const char *listen, unsigned port)
{
    printf("rollcall: %s on %.*s:%u\n", what, (int)(strrchr(listen, ':') - listen), listen, port);
}

static void say_where(const struct ledger_process *process)
{
    const struct config *config = process->config;
    unsigned port = ledger_service_port(process->service);
    say_address("ledger", config->peer.listen, port);
    if (process->pages)
        say_address("metrics", config->ledger.http_listen, ledger_pages_port(process->pages));
    fflush(stdout);
    log_info("ledger_serving", "node=%s port=%u", log_quote(slice_of(config->gateway.node_id)),
             port);
}

static void drain(struct ledger_process *process)
{
    int64_t until_ms = process->loop.clock.now_ms + DRAIN_LIMIT_MS;
    log_info("draining", "limit_ms=%d", DRAIN_LIMIT_MS);
    ledger_service_drain(process->service);
    if (process->pages)
        ledger_pages_drain(process->pages);
    while (!ledger_service_is_drained(process->service) && process->loop.clock.now_ms < until_ms)
        loop_turn(&process->loop, DRAIN_LOOK_MS);
    if (process->pages)
        ledger_pages_end(process->pages);
    while (process->pages && !ledger_pages_is_ended(process->pages))
        loop_turn(&process->loop, DRAIN_LOOK_MS);
}

static int run(const struct config *config)
{
    struct ledger_process process = {.config = config, .signals = {.fd = -1}};
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    bool ready = make_loop(&process) && take_signals(&process) && load_tls(&process) &&
                 open_ledger(&process) && listen_for_peers(&process) && show_pages(&process);
    if (ready) {
        say_where(&process);
        while (!process.draining)
            loop_turn(&process.loop, -1);
        drain(&process);
    }
    free_parts(&process);
    if (ready)
        log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return ready ? 0 : EXIT_FAILED;
}

int ledger_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run);
}
