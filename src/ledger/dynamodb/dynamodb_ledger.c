#include "ledger/dynamodb/dynamodb_ledger.h"

#include "aws/aws_environment.h"
#include "base/container.h"
#include "ledger/dynamodb/append/dynamodb_appends.h"
#include "ledger/dynamodb/client/dynamodb_parallel.h"
#include "ledger/dynamodb/client/dynamodb_url.h"
#include "ledger/dynamodb/dynamodb_operations.h"
#include "ledger/dynamodb/dynamodb_turns.h"
#include "ledger/ledger_lane.h"
#include "ledger/ledger_request_inbox.h"
#include "log/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { LANE_APPENDS, LANE_SERVER, LANE_OTHERS, LANE_COUNT, USER_SHARE = 4, SCOPE_TEXT_MAX = 96 };

struct dynamodb_ledger {
    struct ledger base;
    _Atomic size_t held; /* requests that were taken and not finished */
    _Atomic bool closing;
    pthread_t thread;
    struct dynamodb_url url;
    char scope[SCOPE_TEXT_MAX];
    /* ---- the thread's own ---- */
    struct loop loop;
    struct random random;
    struct ledger_request_inbox inbox;
    struct ledger_lane lanes[LANE_COUNT];
    unsigned lanes_made;
    unsigned next_lane;
    struct fiber_pool *fibers;
    struct dynamodb_client client;
    struct dynamodb_turns turns;
    struct ledger_request *ready; /* whose turn has come */
    struct dynamodb_appends *appends;
    struct ledger_request *finished; /* requests to give back at the end of the turn, in order */
    struct ledger_request **finished_end;
    struct loop_task give_back;
    struct loop_task start; /* the next waiting requests */
};

/* ---- from any thread ---- */

static void dynamodb_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct dynamodb_ledger *self = (struct dynamodb_ledger *)ledger;
    request->submitted_us = (uint64_t)clock_microseconds();
    request->next = NULL;
    if (atomic_fetch_add(&self->held, 1) < LEDGER_QUEUE_MAX) {
        ledger_request_inbox_post(&self->inbox, request);
        return;
    }
    atomic_fetch_sub(&self->held, 1);
    ledger_request_fail(request, LEDGER_BUSY);
    ledger_request_finish(request);
}

/* ---- giving back ---- */

static void run_dynamodb_give_back(struct loop_task *task)
{
    struct dynamodb_ledger *self = CONTAINER_OF(task, struct dynamodb_ledger, give_back);
    struct ledger_request *chain = self->finished;
    self->finished = NULL;
    self->finished_end = &self->finished;
    ledger_request_finish(chain);
    if (atomic_load(&self->closing) && atomic_load(&self->held) == 0)
        loop_stop(&self->loop);
}

static void count_dynamodb_answer(struct dynamodb_ledger *self,
                                  const struct ledger_request *request)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    enum ledger_status status = request->outcome.any.status;
    bool is_append = request->operation == LEDGER_MESSAGE_APPEND;
    bool writes = ledger_request_writes(request);
    bool is_answered = status != LEDGER_UNAVAILABLE && status != LEDGER_TIMEOUT;
    ledger_histogram_add(writes ? &metrics->write_us : &metrics->read_us,
                         (uint64_t)clock_microseconds() - request->submitted_us);
    if (writes && is_answered)
        ledger_count(&metrics->writes_done);
    if (is_append && status == LEDGER_HALTED)
        ledger_count(&metrics->halted_appends);
    if (is_append && status == LEDGER_HALTED && request->sequence_taken)
        ledger_count(&metrics->duplicate_sequences);
    if (is_append && status == LEDGER_OK)
        ledger_count(request->outcome.append.duplicate ? &metrics->duplicates : &metrics->appends);
    if (status != LEDGER_BUSY)
        atomic_store_explicit(&metrics->available, is_answered, memory_order_relaxed);
}

/* The outcome is filled in. */
static void finish_dynamodb_request(struct dynamodb_ledger *self, struct ledger_request *request)
{
    count_dynamodb_answer(self, request);
    atomic_fetch_sub(&self->held, 1);
    request->next = NULL;
    *self->finished_end = request;
    self->finished_end = &request->next;
    loop_defer(&self->loop, &self->give_back);
}

static void refuse_dynamodb_request(struct dynamodb_ledger *self, struct ledger_request *request,
                                    enum ledger_status status)
{
    ledger_request_fail(request, status);
    finish_dynamodb_request(self, request);
}

/* ---- executing ---- */

static _Atomic int64_t *get_waiting_gauge(struct dynamodb_ledger *self,
                                          const struct ledger_request *request)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    return ledger_request_writes(request) ? &metrics->writes_waiting : &metrics->reads_waiting;
}

/* What a fiber is started with. */
struct dynamodb_start {
    struct dynamodb_ledger *ledger;
    struct ledger_request *request;
};

/* The request ends, and the one that waited for it may start. */
static void pass_turn(struct dynamodb_ledger *self, const struct ledger_request *request)
{
    struct ledger_request *next = dynamodb_turns_next(&self->turns, request);
    if (!next)
        return;
    next->next = self->ready;
    self->ready = next;
    loop_defer(&self->loop, &self->start);
}

static void run_dynamodb_request(struct fiber *fiber, void *arg)
{
    struct dynamodb_start start = *(const struct dynamodb_start *)arg;
    struct dynamodb_ledger *self = start.ledger;
    struct dynamodb_task task = {.client = &self->client,
                                 .fiber = fiber,
                                 .request = start.request,
                                 .deadline_ms = self->loop.clock.now_ms + LEDGER_TIME_LIMIT_MS};
    dynamodb_operations_execute(&task);
    dynamodb_task_end(&task);
    pass_turn(self, start.request);
    finish_dynamodb_request(self, start.request);
    loop_defer(&self->loop, &self->start);
}

static void on_dynamodb_message_appended(void *arg, struct ledger_request *request)
{
    struct dynamodb_ledger *self = arg;
    finish_dynamodb_request(self, request);
    loop_defer(&self->loop, &self->start);
}

static void gather_dynamodb_message(struct dynamodb_ledger *self, struct ledger_request *request)
{
    atomic_fetch_sub_explicit(get_waiting_gauge(self, request), 1, memory_order_relaxed);
    dynamodb_appends_add(self->appends, request);
}

static void start_dynamodb_request(struct dynamodb_ledger *self, struct ledger_request *request)
{
    struct dynamodb_start start = {self, request};
    bool is_abandoned = atomic_load_explicit(&request->abandoned, memory_order_relaxed);
    atomic_fetch_sub_explicit(get_waiting_gauge(self, request), 1, memory_order_relaxed);
    if (!is_abandoned && fiber_start(self->fibers, run_dynamodb_request, &start))
        return;
    pass_turn(self, request);
    refuse_dynamodb_request(self, request, is_abandoned ? LEDGER_TIMEOUT : LEDGER_BUSY);
}

/* The server's own requests and those of users take turns. */
static struct ledger_request *take_waiting_request(struct dynamodb_ledger *self)
{
    struct ledger_request *request = ledger_lane_take(&self->lanes[self->next_lane]);
    self->next_lane = self->next_lane == LANE_SERVER ? LANE_OTHERS : LANE_SERVER;
    return request ? request : ledger_lane_take(&self->lanes[self->next_lane]);
}

static struct ledger_request *take_ready_request(struct dynamodb_ledger *self)
{
    struct ledger_request *request = self->ready;
    if (request)
        self->ready = request->next;
    return request;
}

static void start_waiting_requests(struct dynamodb_ledger *self)
{
    struct ledger_request *request;
    while (!dynamodb_appends_is_full(self->appends) &&
           (request = ledger_lane_take(&self->lanes[LANE_APPENDS])))
        gather_dynamodb_message(self, request);
    while (fiber_pool_has_free(self->fibers) && (request = take_ready_request(self)))
        start_dynamodb_request(self, request);
    while (fiber_pool_has_free(self->fibers) && (request = take_waiting_request(self)))
        if (dynamodb_turns_take(&self->turns, request))
            start_dynamodb_request(self, request);
}

static void run_dynamodb_start(struct loop_task *task)
{
    start_waiting_requests(CONTAINER_OF(task, struct dynamodb_ledger, start));
}

static void put_in_lane(struct dynamodb_ledger *self, struct ledger_request *request)
{
    unsigned lane = request->operation == LEDGER_MESSAGE_APPEND ? LANE_APPENDS
                    : ledger_request_user(request).len == 0     ? LANE_SERVER
                                                                : LANE_OTHERS;
    enum ledger_lane_refusal refusal = ledger_lane_put(&self->lanes[lane], request);
    if (refusal == LEDGER_LANE_OVER_SHARE)
        ledger_count(&self->base.metrics.over_share);
    if (refusal == LEDGER_LANE_TAKEN)
        atomic_fetch_add_explicit(get_waiting_gauge(self, request), 1, memory_order_relaxed);
    else
        refuse_dynamodb_request(self, request, LEDGER_BUSY);
}

static void on_dynamodb_requests_submitted(void *arg, struct ledger_request *chain)
{
    struct dynamodb_ledger *self = arg;
    while (chain) {
        struct ledger_request *request = chain;
        chain = request->next;
        put_in_lane(self, request);
    }
    start_waiting_requests(self);
    loop_defer(&self->loop,
               &self->give_back); /* stops the loop if it is closing and holds nothing */
}

/* ---- life ---- */

static void *dynamodb_ledger_main(void *arg)
{
    struct dynamodb_ledger *self = arg;
    loop_run(&self->loop);
    return NULL;
}

/* Frees whatever exists. The thread has ended or never ran; nothing is held. */
static void free_dynamodb_ledger(struct dynamodb_ledger *self)
{
    if (self->inbox.on_requests)
        ledger_request_inbox_free(&self->inbox);
    dynamodb_appends_free(&self->appends);
    dynamodb_turns_free(&self->turns);
    aws_credentials_free(&self->client.credentials);
    http_client_free(&self->client.http);
    fiber_pool_free(&self->client.helpers);
    fiber_pool_free(&self->fibers);
    while (self->lanes_made > 0)
        ledger_lane_free(&self->lanes[--self->lanes_made]);
    if (self->loop.read_buffer)
        loop_free(&self->loop);
    free(self);
}

static void dynamodb_ledger_close(struct ledger *ledger)
{
    struct dynamodb_ledger *self = (struct dynamodb_ledger *)ledger;
    atomic_store(&self->closing, true);
    ledger_request_inbox_wake(&self->inbox);
    pthread_join(self->thread, NULL);
    free_dynamodb_ledger(self);
}

static const struct ledger_backend dynamodb_backend = {.submit = dynamodb_ledger_submit,
                                                       .close = dynamodb_ledger_close};

static bool make_dynamodb_lanes(struct dynamodb_ledger *self)
{
    while (self->lanes_made < LANE_COUNT &&
           ledger_lane_init(&self->lanes[self->lanes_made], LEDGER_QUEUE_MAX / USER_SHARE,
                            UINT64_MAX, random_u64(&self->random)))
        self->lanes_made++;
    return self->lanes_made == LANE_COUNT;
}

static bool make_dynamodb_client(struct dynamodb_ledger *self,
                                 const struct config_dynamodb *settings)
{
    const struct dynamodb_url *url = &self->url;
    struct http_client *http = http_client_make(&self->loop, DYNAMODB_LEDGER_CALLS_MAX);
    if (!http)
        return false;
    snprintf(self->scope, sizeof(self->scope), "aws:amz:%s:dynamodb", url->region);
    self->client = (struct dynamodb_client){.loop = &self->loop,
                                            .http = http,
                                            .random = &self->random,
                                            .metrics = &self->base.metrics,
                                            .settings = *settings,
                                            .url = url->endpoint,
                                            .scope = self->scope,
                                            .table_prefix = url->prefix,
                                            .ca_file = url->ca_file[0] ? url->ca_file
                                                                       : aws_environment_ca_file()};
    struct aws_credentials_options options = {
        .loop = &self->loop, .http = http, .region = url->region};
    self->client.credentials = aws_credentials_make(&options);
    self->client.helpers = fiber_pool_make(DYNAMODB_HELPERS_ALL_MAX);
    return self->client.credentials && self->client.helpers;
}

/* The thread starts with all signals blocked: the main thread handles them. */
static bool start_dynamodb_thread(struct dynamodb_ledger *self)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&self->thread, NULL, dynamodb_ledger_main, self) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

static bool start_dynamodb_ledger(struct dynamodb_ledger *self,
                                  const struct config_dynamodb *settings)
{
    return loop_init(&self->loop) && make_dynamodb_lanes(self) &&
           dynamodb_turns_init(&self->turns, random_u64(&self->random)) &&
           (self->fibers = fiber_pool_make(DYNAMODB_LEDGER_FIBERS_MAX)) &&
           make_dynamodb_client(self, settings) &&
           (self->appends =
                dynamodb_appends_make(&self->client, on_dynamodb_message_appended, self)) &&
           ledger_request_inbox_init(&self->inbox, &self->loop, on_dynamodb_requests_submitted,
                                     self) &&
           start_dynamodb_thread(self);
}

struct ledger *dynamodb_ledger_open(const char *url, const struct config_dynamodb *settings,
                                    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX])
{
    char url_error[DYNAMODB_URL_ERROR_MAX];
    struct dynamodb_ledger *self = calloc(1, sizeof(*self));
    if (self && !dynamodb_url_parse(url, &self->url, url_error)) {
        snprintf(error, DYNAMODB_LEDGER_ERROR_TEXT_MAX, "%s", url_error);
        free(self);
        return NULL;
    }
    snprintf(error, DYNAMODB_LEDGER_ERROR_TEXT_MAX, "out of memory or threads");
    if (!self)
        return NULL;
    self->base.backend = &dynamodb_backend;
    self->finished_end = &self->finished;
    self->give_back.run = run_dynamodb_give_back;
    self->start.run = run_dynamodb_start;
    self->next_lane = LANE_SERVER;
    random_init_system(&self->random);
    if (start_dynamodb_ledger(self, settings))
        return &self->base;
    free_dynamodb_ledger(self);
    return NULL;
}
