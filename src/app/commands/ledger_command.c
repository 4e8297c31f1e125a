#include "app/commands/ledger_command.h"

#include "app/commands/side_process.h"
#include "app/ledger_choice.h"
#include "app/serve_options.h"
#include "ledger/ledger_exposition.h"
#include "ledger/ledger_metrics.h"
#include "ledger/remote/ledger_service.h"
#include "log/log.h"
#include "metrics/metric_text.h"
#include "net/tls.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum { DRAIN_LIMIT_MS = LEDGER_TIME_LIMIT_MS, DRAIN_TURN_MS = 20 };

struct ledger_process {
    struct side_process frame;
    struct tls_context *tls;
    struct ledger *ledger;
    struct ledger_service *service;
    int64_t start_wall_ms;
};

/* ---- parts ---- */

static bool load_ledger_tls(struct ledger_process *process)
{
    const struct config_peer *peer = &process->frame.config->peer;
    char error[TLS_ERROR_TEXT_MAX];
    if (!peer->tls.certificate_file[0])
        return true;
    process->tls = tls_context_load(peer->tls.certificate_file, peer->tls.key_file, error);
    return process->tls || side_process_fail(&process->frame, "peer.tls", error);
}

static bool open_served_ledger(struct ledger_process *process)
{
    const struct config *config = process->frame.config;
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    if (ledger_choice_is_remote(config))
        return side_process_fail(&process->frame, config->ledger.url,
                                 "this process serves the ledger, so it must be sqlite:PATH");
    if (mkdir(config->data_dir, 0700) != 0 && errno != EEXIST)
        return side_process_fail(&process->frame, config->data_dir,
                                 "cannot create the data directory");
    process->ledger = ledger_choice_open(config, error);
    return process->ledger || side_process_fail(&process->frame, "cannot open the ledger", error);
}

static bool listen_for_gateways(struct ledger_process *process)
{
    const struct config *config = process->frame.config;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct peer_link_options options = {
        .loop = &process->frame.loop,
        .streams = &process->frame.streams,
        .random = &process->frame.random,
        .secret = slice_of(config->peer.secret),
        .name = slice_of(config->gateway.node_id),
        .tls = process->tls,
    };
    process->service = ledger_service_open(&options, process->ledger, config->peer.listen, error);
    return process->service || side_process_fail(&process->frame, "listen", error);
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
    process->start_wall_ms = process->frame.loop.clock.wall_ms;
    return side_process_serve_pages(&process->frame, "ledger.http_listen",
                                    process->frame.config->ledger.http_listen, ledger_unready,
                                    write_ledger_metrics, process);
}

/* Frees the parts that exist. The ledger is closed before its service, so that every request is answered. */
static void free_ledger_process(struct ledger_process *process)
{
    ledger_close(&process->ledger);
    ledger_service_free(&process->service);
    tls_context_drop(&process->tls);
    side_process_free(&process->frame);
}

/* ---- running ---- */

static void print_ledger_addresses(const struct ledger_process *process)
{
    const struct config *config = process->frame.config;
    unsigned port = ledger_service_port(process->service);
    side_process_print_address("ledger on ", config->peer.listen, port);
    if (process->frame.pages)
        side_process_print_address("metrics on ", config->ledger.http_listen,
                                   process_pages_port(process->frame.pages));
    fflush(stdout);
    log_info("ledger_serving", "node=%s port=%u", log_quote(slice_of(config->gateway.node_id)),
             port);
}

static void drain_ledger(struct ledger_process *process)
{
    struct loop *loop = &process->frame.loop;
    int64_t until_ms = loop->clock.now_ms + DRAIN_LIMIT_MS;
    log_info("draining", "limit_ms=%d", DRAIN_LIMIT_MS);
    ledger_service_drain(process->service);
    side_process_drain_pages(&process->frame);
    while (!ledger_service_is_drained(process->service) && loop->clock.now_ms < until_ms)
        loop_turn(loop, DRAIN_TURN_MS);
    side_process_end_pages(&process->frame);
}

static int run_ledger(const struct config *config)
{
    struct ledger_process process = {0};
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the file size limit returns an error instead */
    bool ready = side_process_init(&process.frame, "ledger", config) && load_ledger_tls(&process) &&
                 open_served_ledger(&process) && listen_for_gateways(&process) &&
                 serve_ledger_pages(&process);
    if (ready) {
        print_ledger_addresses(&process);
        side_process_run(&process.frame);
        drain_ledger(&process);
    }
    free_ledger_process(&process);
    if (ready)
        log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return ready ? 0 : SIDE_PROCESS_EXIT_FAILED;
}

int ledger_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_ledger);
}
