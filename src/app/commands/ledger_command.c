#include "app/commands/ledger_command.h"

#include "app/commands/process_pages.h"
#include "app/ledger_choice.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "ledger/ledger_exposition.h"
#include "ledger/ledger_metrics.h"
#include "ledger/remote/ledger_service.h"
#include "log/log.h"
#include "metrics/metric_text.h"
#include "net/tls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, DRAIN_LIMIT_MS = LEDGER_TIME_LIMIT_MS, DRAIN_TURN_MS = 20 };

struct ledger_process {
    const struct config *config;
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct tls_context *tls;
    struct ledger *ledger;
    struct ledger_service *service;
    struct process_pages *pages; /* NULL: not configured */
    struct loop_source signals;  /* a signal descriptor */
    int64_t start_wall_ms;
    bool draining;
};

static bool report_ledger_failure(const char *what, const char *why)
{
    fprintf(stderr, "rollcall ledger: %s: %s\n", what, why);
    return false;
}

/* ---- signals ---- */

static void on_ledger_signal(struct loop_source *source, uint32_t events)
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

/* Call it before threads are created: they inherit the signal mask. */
static bool receive_ledger_signals(struct ledger_process *process)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit returns an error instead */
    process->signals = (struct loop_source){
        .fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), .on_ready = on_ledger_signal};
    return (process->signals.fd >= 0 && loop_add_level(&process->loop, &process->signals)) ||
           report_ledger_failure("start", "cannot create a signalfd");
}

/* ---- parts ---- */

static bool load_ledger_tls(struct ledger_process *process)
{
    const struct config_peer *peer = &process->config->peer;
    char error[TLS_ERROR_TEXT_MAX];
    if (!peer->tls.certificate_file[0])
        return true;
    process->tls = tls_context_load(peer->tls.certificate_file, peer->tls.key_file, error);
    return process->tls || report_ledger_failure("peer.tls", error);
}

static bool open_served_ledger(struct ledger_process *process)
{
    const struct config *config = process->config;
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    if (ledger_choice_is_remote(config))
        return report_ledger_failure(config->ledger.url,
                                     "this process serves the ledger, so it must be sqlite:PATH");
    if (mkdir(config->data_dir, 0700) != 0 && errno != EEXIST)
        return report_ledger_failure(config->data_dir, "cannot create the data directory");
    process->ledger = ledger_choice_open(config, error);
    return process->ledger || report_ledger_failure("cannot open the ledger", error);
}

static bool listen_for_gateways(struct ledger_process *process)
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
    return process->service || report_ledger_failure("listen", error);
}

static const char *ledger_unready(void *arg)
{
    const struct ledger_process *process = arg;
    return atomic_load(&ledger_metrics(process->ledger)->available) ? NULL : "the database fails";
}

static void write_ledger_metrics(void *arg, struct buffer *out)
{
    const struct ledger_process *process = arg;
    struct ledger_service_counts counts = ledger_service_counts(process->service);
    ledger_exposition_write_service(out, &counts);
    ledger_exposition_write_ledger(out, ledger_metrics(process->ledger));
    metric_text_process(out, process->start_wall_ms);
}

static bool serve_ledger_pages(struct ledger_process *process)
{
    const char *address = process->config->ledger.http_listen;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct process_pages_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .config = process->config,
        .unready = ledger_unready,
        .write_metrics = write_ledger_metrics,
        .arg = process,
    };
    if (!address[0])
        return true;
    process->start_wall_ms = process->loop.clock.wall_ms;
    process->pages = process_pages_open(&options, address, error);
    return process->pages || report_ledger_failure("ledger.http_listen", error);
}

/* Frees the parts that exist. The ledger is closed before its service, so that every request is answered. */
static void free_ledger_process(struct ledger_process *process)
{
    process_pages_free(&process->pages);
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

/* Prints the actual port; the address is known to be valid. */
static void print_ledger_address(const char *what, const char *listen, unsigned port)
{
    printf("rollcall: %s on %.*s:%u\n", what, (int)(strrchr(listen, ':') - listen), listen, port);
}

static void print_ledger_addresses(const struct ledger_process *process)
{
    const struct config *config = process->config;
    unsigned port = ledger_service_port(process->service);
    print_ledger_address("ledger", config->peer.listen, port);
    if (process->pages)
        print_ledger_address("metrics", config->ledger.http_listen,
                             process_pages_port(process->pages));
    fflush(stdout);
    log_info("ledger_serving", "node=%s port=%u", log_quote(slice_of(config->gateway.node_id)),
             port);
}

static void drain_ledger(struct ledger_process *process)
{
    int64_t until_ms = process->loop.clock.now_ms + DRAIN_LIMIT_MS;
    log_info("draining", "limit_ms=%d", DRAIN_LIMIT_MS);
    ledger_service_drain(process->service);
    if (process->pages)
        process_pages_drain(process->pages);
    while (!ledger_service_is_drained(process->service) && process->loop.clock.now_ms < until_ms)
        loop_turn(&process->loop, DRAIN_TURN_MS);
    if (process->pages)
        process_pages_end(process->pages);
    while (process->pages && !process_pages_is_ended(process->pages))
        loop_turn(&process->loop, DRAIN_TURN_MS);
}

static int run_ledger(const struct config *config)
{
    struct ledger_process process = {.config = config, .signals = {.fd = -1}};
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    random_init_system(&process.random);
    bool ready = (loop_init(&process.loop) && stream_set_init(&process.streams, &process.loop)) ||
                 report_ledger_failure("start", "out of memory or descriptors");
    ready = ready && receive_ledger_signals(&process) && load_ledger_tls(&process) &&
            open_served_ledger(&process) && listen_for_gateways(&process) &&
            serve_ledger_pages(&process);
    if (ready) {
        print_ledger_addresses(&process);
        while (!process.draining)
            loop_turn(&process.loop, -1);
        drain_ledger(&process);
    }
    free_ledger_process(&process);
    if (ready)
        log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return ready ? 0 : EXIT_FAILED;
}

int ledger_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_ledger);
}
