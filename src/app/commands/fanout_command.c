#include "app/commands/fanout_command.h"

#include "app/commands/process_pages.h"
#include "app/dead_letter_watch.h"
#include "app/gateway/fanout_worker.h"
#include "app/ledger_choice.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "log/log.h"
#include "net/mailbox.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, FANOUT_WORKERS_MAX = METRICS_WORKERS_MAX - 2, SAMPLE_MS = 1000 };

struct fanout_process;

struct fanout_thread {
    pthread_t id;
    struct fanout_process *process;
    struct fanout_worker *worker;
    struct mail stopped; /* to the main thread */
};

/* The main thread has a loop of its own: for signals, for the pages, and to hear which workers have stopped. */
struct fanout_process {
    const struct config *config;
    struct loop loop;
    struct stream_set streams;
    struct mailbox mailbox;
    struct fanout_worker_parts parts;
    struct exposition exposition;
    struct dead_letter_watch *dead_letters;
    char name[PEER_NAME_BYTES_MAX]; /* as a peer */
    struct fanout_thread threads[FANOUT_WORKERS_MAX];
    size_t running_count;
    struct process_pages *pages; /* NULL: not configured */
    struct loop_source signals;  /* a signal descriptor */
    struct wheel_timer sampling;
    bool draining;
};

static bool report_fanout_failure(const char *what, const char *why)
{
    fprintf(stderr, "rollcall fanout: %s: %s\n", what, why);
    return false;
}

/* ---- signals ---- */

static void drain_fanout_workers(struct fanout_process *process)
{
    process->draining = true;
    log_info("draining", "workers=%zu", process->parts.workers);
    if (process->pages)
        process_pages_drain(process->pages);
    for (size_t i = 0; i < process->parts.workers; i++)
        fanout_worker_drain(process->threads[i].worker);
}

static void on_fanout_signal(struct loop_source *source, uint32_t events)
{
    struct fanout_process *process = CONTAINER_OF(source, struct fanout_process, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (process->draining)
        _exit(EXIT_FAILED);
    drain_fanout_workers(process);
}

/* Call it before threads are created: they inherit the signal mask. */
static bool receive_fanout_signals(struct fanout_process *process)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGHUP, SIG_IGN);
    process->signals = (struct loop_source){
        .fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), .on_ready = on_fanout_signal};
    return (process->signals.fd >= 0 && loop_add_level(&process->loop, &process->signals)) ||
           report_fanout_failure("start", "cannot create a signalfd");
}

/* ---- pages ---- */

static const char *fanout_unready(void *arg)
{
    const struct fanout_process *process = arg;
    const char *unready = NULL;
    for (size_t i = 0; i < process->parts.workers && !unready; i++)
        unready = fanout_worker_unready(process->threads[i].worker);
    return unready;
}

static void write_fanout_metrics(void *arg, struct buffer *out)
{
    struct fanout_process *process = arg;
    exposition_write(out, &process->exposition, process->loop.clock.now_ms);
}

static void sample_fanout_metrics(struct wheel_timer *timer)
{
    struct fanout_process *process = CONTAINER_OF(timer, struct fanout_process, sampling);
    exposition_sample(&process->exposition, process->loop.clock.now_ms);
    loop_set_timer(&process->loop, timer, process->loop.clock.now_ms + SAMPLE_MS);
}

static bool serve_fanout_pages(struct fanout_process *process)
{
    const char *address = process->config->ops.listen;
    char error[LISTENER_ERROR_TEXT_MAX];
    struct process_pages_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .config = process->config,
        .unready = fanout_unready,
        .write_metrics = write_fanout_metrics,
        .arg = process,
    };
    process->sampling.fire = sample_fanout_metrics;
    sample_fanout_metrics(&process->sampling);
    if (!address[0])
        return true;
    process->pages = process_pages_open(&options, address, error);
    return process->pages || report_fanout_failure("ops.listen", error);
}

/* ---- parts ---- */

/* Its name as a peer has a colon, so it is no gateway's (bus/fleet/peer_hub.h). */
static bool make_fanout_fleet(struct fanout_process *process)
{
    char error[FLEET_ERROR_TEXT_MAX];
    snprintf(process->name, sizeof(process->name), "fanout:%s", process->config->gateway.node_id);
    process->parts.fleet = fleet_make(process->config, slice_of(process->name), error);
    return process->parts.fleet || report_fanout_failure("start", error);
}

static bool open_fanout_ledger(struct fanout_process *process)
{
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    process->parts.ledger = ledger_choice_open_with_breaker(process->config, error);
    return process->parts.ledger || report_fanout_failure("ledger", error);
}

static bool make_fanout_parts(struct fanout_process *process)
{
    struct random random;
    size_t wanted = process->config->gateway.workers;
    size_t workers = wanted ? wanted : (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    random_init_system(&random);
    process->parts.config = process->config;
    process->parts.workers = workers > FANOUT_WORKERS_MAX ? FANOUT_WORKERS_MAX : workers;
    process->parts.hash_seed = random_u64(&random);
    process->parts.exposition = &process->exposition;
    process->parts.bus_group =
        mailbox_bus_group_make(process->parts.workers, process->parts.hash_seed);
    exposition_init(&process->exposition, process->loop.clock.now_ms, process->loop.clock.wall_ms);
    return (process->parts.bus_group || report_fanout_failure("start", "out of memory")) &&
           make_fanout_fleet(process) && open_fanout_ledger(process);
}

static bool watch_fanout_dead_letters(struct fanout_process *process)
{
    process->dead_letters = dead_letter_watch_start(process->config, &process->exposition);
    return process->dead_letters || report_fanout_failure("start", "cannot create a thread");
}

static bool make_fanout_workers(struct fanout_process *process)
{
    char error[FANOUT_WORKER_ERROR_TEXT_MAX];
    for (size_t i = 0; i < process->parts.workers; i++) {
        process->threads[i].worker = fanout_worker_make(&process->parts, i, error);
        if (!process->threads[i].worker)
            return report_fanout_failure("start", error);
    }
    return true;
}

/* ---- threads ---- */

static void on_fanout_thread_stopped(struct mail *mail, void *owner)
{
    struct fanout_process *process = owner;
    pthread_join(CONTAINER_OF(mail, struct fanout_thread, stopped)->id, NULL);
    process->running_count--;
}

static void *run_fanout_thread(void *arg)
{
    struct fanout_thread *thread = arg;
    fanout_worker_run(thread->worker);
    thread->stopped.on_open = on_fanout_thread_stopped;
    mailbox_post(&thread->process->mailbox, &thread->stopped);
    return NULL;
}

static bool start_fanout_threads(struct fanout_process *process)
{
    for (size_t i = 0; i < process->parts.workers; i++) {
        struct fanout_thread *thread = &process->threads[i];
        thread->process = process;
        if (pthread_create(&thread->id, NULL, run_fanout_thread, thread) != 0)
            return report_fanout_failure("start", "cannot create a thread");
        process->running_count++;
    }
    return true;
}

/* ---- the end ---- */

static void end_fanout_pages(struct fanout_process *process)
{
    if (!process->pages)
        return;
    process_pages_end(process->pages);
    while (!process_pages_is_ended(process->pages))
        loop_turn(&process->loop, -1);
    process_pages_free(&process->pages);
}

/* Completions of one worker may send mail to another. */
static void finish_fanout_workers(struct fanout_process *process)
{
    bool had_work = true;
    while (had_work) {
        had_work = false;
        for (size_t i = 0; i < process->parts.workers; i++)
            had_work |= fanout_worker_finish(process->threads[i].worker);
    }
}

static void free_fanout_process(struct fanout_process *process)
{
    end_fanout_pages(process);
    ledger_close(&process->parts.ledger); /* completes what workers wait for */
    finish_fanout_workers(process);
    for (size_t i = 0; i < process->parts.workers; i++)
        fanout_worker_free(&process->threads[i].worker);
    mailbox_bus_group_free(&process->parts.bus_group);
    fleet_free(&process->parts.fleet);
    dead_letter_watch_free(&process->dead_letters);
    exposition_free(&process->exposition);
    close(process->signals.fd);
    mailbox_free(&process->mailbox);
    stream_set_free(&process->streams);
    loop_free(&process->loop);
}

/* ---- running ---- */

static void print_fanout_start(const struct fanout_process *process)
{
    const char *listen = process->config->ops.listen;
    log_info("consuming", "node=%s workers=%zu",
             log_quote(slice_of(process->config->gateway.node_id)), process->parts.workers);
    puts("rollcall: fan-out from Kafka");
    if (process->pages)
        printf("rollcall: operations at http://%.*s:%u/\n", (int)(strrchr(listen, ':') - listen),
               listen, process_pages_port(process->pages));
    fflush(stdout);
}

/* If it cannot start, the process ends, so nothing is undone. */
static int run_fanout(const struct config *config)
{
    static struct fanout_process process; /* one per process, too large for a stack */
    process.config = config;
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    bool started = (loop_init(&process.loop) && stream_set_init(&process.streams, &process.loop) &&
                    mailbox_init(&process.mailbox, &process.loop, MAILBOX_MAIL_MAX, &process)) ||
                   report_fanout_failure("start", "out of memory or descriptors");
    started = started && receive_fanout_signals(&process) && make_fanout_parts(&process) &&
              make_fanout_workers(&process) && watch_fanout_dead_letters(&process) &&
              serve_fanout_pages(&process) && start_fanout_threads(&process);
    if (!started)
        return EXIT_FAILED;
    print_fanout_start(&process);
    while (process.running_count > 0)
        loop_turn(&process.loop, -1);
    free_fanout_process(&process);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return 0;
}

int fanout_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_fanout);
}
