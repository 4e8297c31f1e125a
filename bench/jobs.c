#include "jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cost.h"
#include "frame.h"
#include "latency.h"
#include "pool.h"

#define OPENING_AT_ONCE 64
#define STALL_NS 20000000000ull
#define WARM_UP_SECONDS 0.6 /* enough for a just-in-time compiler */
#define WARM_UP_CHANGES 6
#define WARM_UP_CONNECT_SHARE 5 /* one in five clients */
#define SETTLE_SECONDS 0.4
#define IDLE_SETTLE_SECONDS 3.0
#define TURN_MS 1
#define FLAT_BURST 100
#define NANOSECONDS_PER_SECOND 1000000000.0

struct job {
    const struct job_settings *settings;
    struct pool *pool;
    struct frame heartbeat;
    struct frame subscribe;
    uint64_t *sent_at_ns; /* per client, of the heartbeat in flight */
    uint64_t replies;
    uint64_t subscriptions;
    uint64_t changes_seen;
    bool closed_loop; /* a reply is followed by the next heartbeat */
    struct latency latency;
};

/* ---- callbacks of the pool ---- */

static void heartbeat_send(struct job *job, size_t client)
{
    job->sent_at_ns[client] = cost_now_ns();
    pool_send(job->pool, client, &job->heartbeat);
}

static void on_ready(struct job *job, size_t client)
{
    if (job->subscribe.count > 0 && client < job->settings->clients)
        pool_send(job->pool, client, &job->subscribe);
}

static void on_text(struct job *job, size_t client, const char *text, size_t count)
{
    const struct dialect *dialect = job->settings->dialect;
    if (dialect_contains(text, count, dialect->heartbeat_reply)) {
        job->replies++;
        latency_add(&job->latency, cost_now_ns() - job->sent_at_ns[client]);
        if (job->closed_loop)
            heartbeat_send(job, client);
    } else if (dialect_contains(text, count, dialect->changed)) {
        if (client < job->settings->clients)
            job->changes_seen++;
    } else if (dialect->subscribed != NULL && dialect_contains(text, count, dialect->subscribed)) {
        job->subscriptions++;
    } else if (!dialect->greeting || !dialect_starts_with(text, count, dialect->greeting)) {
        cost_fail("client %zu received an unexpected message: %.*s", client, (int)count, text);
    }
}

/* ---- common steps ---- */

static void job_begin(struct job *job, const struct job_settings *settings)
{
    *job = (struct job){.settings = settings};
    const char *heartbeat =
        settings->active ? settings->dialect->heartbeat_active : settings->dialect->heartbeat;
    frame_encode(&job->heartbeat, FRAME_TEXT, heartbeat, strlen(heartbeat));
    job->sent_at_ns = calloc(settings->clients + 1, sizeof(*job->sent_at_ns));
    if (job->sent_at_ns == NULL)
        cost_fail("out of memory");
    struct pool_settings pool = {.dialect = settings->dialect,
                                 .server_port = settings->server_port,
                                 .capacity = settings->clients + 1,
                                 .tokens = settings->tokens};
    job->pool = pool_new(&pool, (struct pool_listener){job, on_ready, on_text});
}

static void job_end(struct job *job)
{
    pool_free(&job->pool);
    free(job->sent_at_ns);
}

/* Turns the pool until `*counter` has reached `goal`. */
static void wait_for_count(struct job *job, const uint64_t *counter, uint64_t goal,
                           const char *what)
{
    uint64_t deadline_ns = cost_now_ns() + STALL_NS;
    while (*counter < goal) {
        pool_turn(job->pool, TURN_MS);
        if (cost_now_ns() > deadline_ns)
            cost_fail("only %" PRIu64 " of %" PRIu64 " %s arrived", *counter, goal, what);
    }
    if (*counter > goal)
        cost_fail("%" PRIu64 " instead of %" PRIu64 " %s arrived", *counter, goal, what);
}

static void wait_for_ready(struct job *job, size_t goal)
{
    uint64_t deadline_ns = cost_now_ns() + STALL_NS;
    while (pool_ready_count(job->pool) < goal) {
        pool_turn(job->pool, TURN_MS);
        if (cost_now_ns() > deadline_ns)
            cost_fail("only %zu of %zu clients are ready", pool_ready_count(job->pool), goal);
    }
}

/* Opens the clients [first, end), a bounded number at a time; all others must be closed or ready.
 */
static void open_clients(struct job *job, size_t first, size_t end)
{
    size_t ready_before = pool_ready_count(job->pool);
    for (size_t next = first; next < end; next++) {
        size_t started = next - first + 1;
        pool_open(job->pool, next);
        if (started > OPENING_AT_ONCE)
            wait_for_ready(job, ready_before + started - OPENING_AT_ONCE);
    }
    wait_for_ready(job, ready_before + end - first);
}

/* Answers pings meanwhile. */
static void turn_for(struct job *job, double seconds)
{
    uint64_t end_ns = cost_now_ns() + (uint64_t)(seconds * NANOSECONDS_PER_SECOND);
    while (cost_now_ns() < end_ns)
        pool_turn(job->pool, TURN_MS);
}

/* ---- idle ---- */

static void job_idle(const struct job_settings *settings)
{
    struct job job;
    job_begin(&job, settings);
    uint64_t before = cost_resident_bytes(settings->server_process);
    open_clients(&job, 0, settings->clients);
    turn_for(&job, IDLE_SETTLE_SECONDS);
    uint64_t after = cost_resident_bytes(settings->server_process);
    printf("{\"clients\":%zu,\"resident_before_bytes\":%" PRIu64
           ",\"resident_after_bytes\":%" PRIu64 ",\"bytes_per_connection\":%.1f}\n",
           settings->clients, before, after,
           ((double)after - (double)before) / (double)settings->clients);
    job_end(&job);
}

/* ---- echo and flat ---- */

struct interval {
    uint64_t cpu_ns;
    uint64_t time_ns;
    uint64_t replies;
};

static struct interval interval_begin(struct job *job)
{
    latency_reset(&job->latency);
    return (struct interval){cost_cpu_ns(job->settings->server_process), cost_now_ns(),
                             job->replies};
}

static void interval_print(const struct job *job, const struct interval *begin)
{
    uint64_t cpu_ns = cost_cpu_ns(job->settings->server_process) - begin->cpu_ns;
    uint64_t time_ns = cost_now_ns() - begin->time_ns;
    uint64_t replies = job->replies - begin->replies;
    printf("{\"clients\":%zu,\"messages\":%" PRIu64 ",\"cpu_us_per_message\":%.4f"
           ",\"messages_per_second\":%.0f,\"server_busy\":%.3f"
           ",\"latency_p50_us\":%" PRIu64 ",\"latency_p99_us\":%" PRIu64 "}\n",
           job->settings->clients, replies, (double)cpu_ns / 1e3 / (double)replies,
           (double)replies * 1e9 / (double)time_ns, (double)cpu_ns / (double)time_ns,
           latency_quantile_us(&job->latency, 0.50), latency_quantile_us(&job->latency, 0.99));
}

static void echo_by_count(struct job *job)
{
    size_t clients = job->settings->clients;
    for (uint64_t sent = 0; sent < job->settings->messages; sent += clients) {
        uint64_t goal = job->replies + clients;
        for (size_t i = 0; i < clients; i++)
            heartbeat_send(job, i);
        wait_for_count(job, &job->replies, goal, "answers");
    }
}

static void job_echo(const struct job_settings *settings)
{
    struct job job;
    job_begin(&job, settings);
    open_clients(&job, 0, settings->clients);
    struct interval begin = interval_begin(&job);
    if (settings->messages > 0) {
        echo_by_count(&job);
    } else {
        job.closed_loop = true;
        for (size_t i = 0; i < settings->clients; i++)
            heartbeat_send(&job, i);
        turn_for(&job, WARM_UP_SECONDS);
        begin = interval_begin(&job);
        turn_for(&job, settings->seconds);
    }
    interval_print(&job, &begin);
    job_end(&job);
}

/* Sends a burst of heartbeats whenever one is due, each from the next client in turn. A single message
 * would mostly cost the server's wake-up, which would hide the cost to be measured. */
static void flat_run(struct job *job, double seconds, size_t *next_client)
{
    uint64_t goal = job->replies;
    uint64_t bursts = (uint64_t)(seconds * (double)job->settings->rate / FLAT_BURST);
    double burst_interval_ns = NANOSECONDS_PER_SECOND * FLAT_BURST / (double)job->settings->rate;
    uint64_t begin_ns = cost_now_ns();
    for (uint64_t burst = 0; burst < bursts; burst++) {
        while ((double)(cost_now_ns() - begin_ns) < (double)burst * burst_interval_ns)
            pool_turn(job->pool, TURN_MS);
        for (size_t i = 0; i < FLAT_BURST; i++) {
            heartbeat_send(job, *next_client);
            *next_client = (*next_client + 1) % job->settings->clients;
        }
    }
    wait_for_count(job, &job->replies, goal + bursts * FLAT_BURST, "answers");
}

static void job_flat(const struct job_settings *settings)
{
    struct job job;
    size_t next_client = 0;
    job_begin(&job, settings);
    open_clients(&job, 0, settings->clients);
    flat_run(&job, WARM_UP_SECONDS, &next_client);
    struct interval begin = interval_begin(&job);
    flat_run(&job, settings->seconds, &next_client);
    interval_print(&job, &begin);
    job_end(&job);
}

/* ---- fanout ---- */

static void star_change(struct job *job, const struct frame *announcement)
{
    size_t star = job->settings->clients;
    uint64_t goal = job->changes_seen + job->settings->clients;
    if (announcement->count > 0)
        pool_send(job->pool, 0, announcement);
    else if (pool_ready_count(job->pool) > job->settings->clients)
        pool_close(job->pool, star);
    else
        open_clients(job, star, star + 1);
    wait_for_count(job, &job->changes_seen, goal, "deliveries");
}

static void fanout_prepare(struct job *job, struct frame *announcement)
{
    const struct dialect *dialect = job->settings->dialect;
    announcement->count = 0;
    if (dialect->announcement != NULL)
        frame_encode(announcement, FRAME_TEXT, dialect->announcement,
                     strlen(dialect->announcement));
    if (dialect->subscribe != NULL)
        frame_encode(&job->subscribe, FRAME_TEXT, dialect->subscribe, strlen(dialect->subscribe));
    open_clients(job, 0, job->settings->clients);
    if (dialect->subscribe != NULL)
        wait_for_count(job, &job->subscriptions, job->settings->clients, "snapshots");
    for (int i = 0; i < WARM_UP_CHANGES; i++)
        star_change(job, announcement);
}

static void job_fanout(const struct job_settings *settings)
{
    struct job job;
    struct frame announcement;
    job_begin(&job, settings);
    fanout_prepare(&job, &announcement);
    uint64_t time_ns = cost_now_ns();
    uint64_t cpu_ns = cost_cpu_ns(settings->server_process);
    uint64_t system_ns = cost_system_ns(settings->server_process);
    for (uint64_t i = 0; i < settings->changes; i++)
        star_change(&job, &announcement);
    cpu_ns = cost_cpu_ns(settings->server_process) - cpu_ns;
    system_ns = cost_system_ns(settings->server_process) - system_ns;
    time_ns = cost_now_ns() - time_ns;
    double deliveries = (double)(settings->changes * settings->clients);
    printf("{\"clients\":%zu,\"deliveries\":%.0f,\"cpu_us_per_delivery\":%.4f"
           ",\"system_us_per_delivery\":%.4f,\"change_ms\":%.3f,\"server_busy\":%.3f}\n",
           settings->clients, deliveries, (double)cpu_ns / 1e3 / deliveries,
           (double)system_ns / 1e3 / deliveries, (double)time_ns / 1e6 / (double)settings->changes,
           (double)cpu_ns / (double)time_ns);
    job_end(&job);
}

/* ---- connect ---- */

static uint64_t connect_measure(struct job *job, size_t first, size_t end)
{
    uint64_t cpu_ns = cost_cpu_ns(job->settings->server_process);
    open_clients(job, first, end);
    return cost_cpu_ns(job->settings->server_process) - cpu_ns;
}

static uint64_t close_measure(struct job *job, size_t first, size_t end)
{
    uint64_t cpu_ns = cost_cpu_ns(job->settings->server_process);
    for (size_t i = first; i < end; i++)
        pool_close(job->pool, i);
    turn_for(job, SETTLE_SECONDS);
    return cost_cpu_ns(job->settings->server_process) - cpu_ns;
}

static void job_connect(const struct job_settings *settings)
{
    struct job job;
    size_t first = settings->clients / WARM_UP_CONNECT_SHARE;
    size_t measured = settings->clients - first;
    job_begin(&job, settings);
    connect_measure(&job, 0, first);
    close_measure(&job, 0, first);
    uint64_t time_ns = cost_now_ns();
    uint64_t connect_ns = connect_measure(&job, first, settings->clients);
    time_ns = cost_now_ns() - time_ns;
    uint64_t close_ns = close_measure(&job, first, settings->clients);
    printf("{\"clients\":%zu,\"cpu_us_per_connect\":%.3f,\"cpu_us_per_close\":%.3f"
           ",\"connects_per_second\":%.0f,\"server_busy\":%.3f}\n",
           measured, (double)connect_ns / 1e3 / (double)measured,
           (double)close_ns / 1e3 / (double)measured, (double)measured * 1e9 / (double)time_ns,
           (double)connect_ns / (double)time_ns);
    job_end(&job);
}

static const struct job_kind jobs[] = {
    {"idle", job_idle},       {"echo", job_echo}, {"fanout", job_fanout},
    {"connect", job_connect}, {"flat", job_flat},
};

const struct job_kind *job_find(const char *name)
{
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        if (strcmp(jobs[i].name, name) == 0)
            return &jobs[i];
    return NULL;
}
