#include "app/commands/fanout_command.h"

#include "app/commands/side_process.h"
#include "app/dead_letter_watch.h"
#include "app/gateway/fanout_worker.h"
#include "app/ledger_choice.h"
#include "app/serve_options.h"
#include "base/container.h"
#include "log/log.h"
#include "net/mailbox.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FANOUT_WORKERS_MAX = METRICS_WORKERS_MAX - 2, SAMPLE_MS = 1000 };

struct fanout_process;

struct fanout_thread {
    pthread_t id;
    struct fanout_process *process;
    struct fanout_worker *worker;
    struct mail stopped; /* to the main thread */
};

/* The main thread has a loop of its own: for signals, for the pages, and to hear which workers have stopped. */
struct fanout_process {
    struct side_process frame;
    struct mailbox mailbox;
    struct fanout_worker_parts parts;
    struct exposition exposition;
    struct dead_letter_watch *dead_letters;
    char name[PEER_NAME_BYTES_MAX]; /* as a peer */
    struct fanout_thread threads[FANOUT_WORKERS_MAX];
    size_t running_count;
    struct wheel_timer sampling;
};

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
    exposition_write(out, &process->exposition, process->frame.loop.clock.now_ms);
}

static void sample_fanout_metrics(struct wheel_timer *timer)
{
    struct fanout_process *process = CONTAINER_OF(timer, struct fanout_process, sampling);
    exposition_sample(&process->exposition, process->frame.loop.clock.now_ms);
    loop_set_timer(&process->frame.loop, timer, process->frame.loop.clock.now_ms + SAMPLE_MS);
}

static bool serve_fanout_pages(struct fanout_process *process)
{
    process->sampling.fire = sample_fanout_metrics;
    sample_fanout_metrics(&process->sampling);
    return side_process_serve_pages(&process->frame, "ops.listen",
                                    process->frame.config->ops.listen, fanout_unready,
                                    write_fanout_metrics, process);
}

/* ---- parts ---- */

static bool open_fanout_mailbox(struct fanout_process *process)
{
    return mailbox_init(&process->mailbox, &process->frame.loop, MAILBOX_MAIL_MAX, process) ||
           side_process_fail(&process->frame, "start", "out of memory or descriptors");
}

/* Its name as a peer has a colon, so it is no gateway's (bus/fleet/peer_hub.h). */
static bool make_fanout_fleet(struct fanout_process *process)
{
    char error[FLEET_ERROR_TEXT_MAX];
    snprintf(process->name, sizeof(process->name), "fanout:%s",
             process->frame.config->gateway.node_id);
    process->parts.fleet = fleet_make(process->frame.config, slice_of(process->name), error);
    return process->parts.fleet || side_process_fail(&process->frame, "start", error);
}

static bool open_fanout_ledger(struct fanout_process *process)
{
    char error[LEDGER_CHOICE_ERROR_TEXT_MAX];
    process->parts.ledger = ledger_choice_open_with_breaker(process->frame.config, error);
    return process->parts.ledger || side_process_fail(&process->frame, "ledger", error);
}

static bool make_fanout_parts(struct fanout_process *process)
{
    size_t wanted = process->frame.config->gateway.workers;
    size_t workers = wanted ? wanted : (size_t)sysconf(_SC_NPROCESSORS_ONLN);
    process->parts.config = process->frame.config;
    process->parts.workers = workers > FANOUT_WORKERS_MAX ? FANOUT_WORKERS_MAX : workers;
    process->parts.hash_seed = random_u64(&process->frame.random);
    process->parts.exposition = &process->exposition;
    process->parts.bus_group =
        mailbox_bus_group_make(process->parts.workers, process->parts.hash_seed);
    exposition_init(&process->exposition, process->frame.loop.clock.now_ms,
                    process->frame.loop.clock.wall_ms);
    return (process->parts.bus_group ||
            side_process_fail(&process->frame, "start", "out of memory")) &&
           make_fanout_fleet(process) && open_fanout_ledger(process);
}

static bool watch_fanout_dead_letters(struct fanout_process *process)
{
    process->dead_letters = dead_letter_watch_start(process->frame.config, &process->exposition);
    return process->dead_letters ||
           side_process_fail(&process->frame, "start", "cannot create a thread");
}

static bool make_fanout_workers(struct fanout_process *process)
{
    char error[FANOUT_WORKER_ERROR_TEXT_MAX];
    for (size_t i = 0; i < process->parts.workers; i++) {
        process->threads[i].worker = fanout_worker_make(&process->parts, i, error);
        if (!process->threads[i].worker)
            return side_process_fail(&process->frame, "start", error);
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
            return side_process_fail(&process->frame, "start", "cannot create a thread");
        process->running_count++;
    }
    return true;
}

/* ---- the end ---- */

static void drain_fanout_workers(struct fanout_process *process)
{
    log_info("draining", "workers=%zu", process->parts.workers);
    side_process_drain_pages(&process->frame);
    for (size_t i = 0; i < process->parts.workers; i++)
        fanout_worker_drain(process->threads[i].worker);
    while (process->running_count > 0)
        loop_turn(&process->frame.loop, -1);
    side_process_end_pages(&process->frame);
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
    ledger_close(&process->parts.ledger); /* completes what workers wait for */
    finish_fanout_workers(process);
    for (size_t i = 0; i < process->parts.workers; i++)
        fanout_worker_free(&process->threads[i].worker);
    mailbox_bus_group_free(&process->parts.bus_group);
    fleet_free(&process->parts.fleet);
    dead_letter_watch_free(&process->dead_letters);
    exposition_free(&process->exposition);
    mailbox_free(&process->mailbox);
    side_process_free(&process->frame);
}

/* ---- running ---- */

static void print_fanout_start(const struct fanout_process *process)
{
    const struct config *config = process->frame.config;
    log_info("consuming", "node=%s workers=%zu", log_quote(slice_of(config->gateway.node_id)),
             process->parts.workers);
    puts("rollcall: fan-out from Kafka");
    if (process->frame.pages)
        side_process_print_address("operations at http://", config->ops.listen,
                                   process_pages_port(process->frame.pages));
    fflush(stdout);
}

/* If it cannot start, the process ends, so nothing is undone. */
static int run_fanout(const struct config *config)
{
    static struct fanout_process process; /* one per process, too large for a stack */
    if (!side_process_init(&process.frame, "fanout", config) || !open_fanout_mailbox(&process) ||
        !make_fanout_parts(&process) || !make_fanout_workers(&process) ||
        !watch_fanout_dead_letters(&process) || !serve_fanout_pages(&process) ||
        !start_fanout_threads(&process))
        return SIDE_PROCESS_EXIT_FAILED;
    print_fanout_start(&process);
    side_process_run(&process.frame);
    drain_fanout_workers(&process);
    free_fanout_process(&process);
    log_info("stopped", "node=%s", log_quote(slice_of(config->gateway.node_id)));
    return 0;
}

int fanout_command(int argc, char **argv)
{
    return serve_options_run(argc, argv, run_fanout);
}
