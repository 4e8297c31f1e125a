#include "ledger/remote/remote_ledger.h"

#include "base/container.h"
#include "ledger/ledger_request_inbox.h"
#include "ledger/remote/ledger_wire.h"
#include "ledger/remote/remote_slots.h"
#include "log/log.h"
#include "net/tls.h"
#include "peer/peer_dialer.h"

#include <stdlib.h>

enum { SWEEP_MS = 200, FRAME_BYTES_KEPT = 1 << 20 };

enum reach { UNTRIED, UP, DOWN };

struct remote_ledger {
    struct ledger base;
    _Atomic int reach;   /* an enum reach; only the thread writes it */
    _Atomic size_t held; /* requests that were taken and not finished */
    _Atomic bool closing;
    pthread_t thread;
    /* ---- the thread's own ---- */
    struct loop loop;
    struct stream_set streams;
    struct random random;
    struct tls_context *tls;
    struct ledger_request_inbox inbox;
    struct peer_dialer *dialer;
    struct remote_slots slots;
    struct buffer frame;             /* the request that is being encoded */
    struct ledger_request *finished; /* requests to give back at the end of the turn, in order */
    struct ledger_request **finished_end;
    struct loop_task give_back;
    struct wheel_timer sweep;
    int64_t down_ms;    /* when the link broke; before the first link, the start */
    int64_t closing_ms; /* when closing began; 0: not closing */
};

/* All changes of reach go through here. */
static void set_remote_reach(struct remote_ledger *self, enum reach reach)
{
    atomic_store(&self->reach, (int)reach);
    atomic_store_explicit(&self->base.metrics.available, reach == UP, memory_order_relaxed);
    if (reach == DOWN)
        self->down_ms = self->loop.clock.now_ms;
}

/* ---- from any thread ---- */

static void remote_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct remote_ledger *self = (struct remote_ledger *)ledger;
    bool down = atomic_load(&self->reach) == DOWN;
    request->submitted_us = (uint64_t)clock_microseconds();
    request->next = NULL;
    if (!down && atomic_fetch_add(&self->held, 1) < LEDGER_QUEUE_MAX) {
        ledger_request_inbox_post(&self->inbox, request);
        return;
    }
    if (!down)
        atomic_fetch_sub(&self->held, 1);
    ledger_request_fail(request, down ? LEDGER_UNAVAILABLE : LEDGER_BUSY);
    ledger_request_finish(request);
}

/* ---- giving back ---- */

static void run_remote_give_back(struct loop_task *task)
{
    struct remote_ledger *self = CONTAINER_OF(task, struct remote_ledger, give_back);
    struct ledger_request *chain = self->finished;
    self->finished = NULL;
    self->finished_end = &self->finished;
    ledger_request_finish(chain);
}

static void count_remote_waiting(struct remote_ledger *self, const struct ledger_request *request,
                                 int more)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    atomic_fetch_add_explicit(ledger_request_writes(request) ? &metrics->writes_waiting
                                                             : &metrics->reads_waiting,
                              more, memory_order_relaxed);
}

/* The outcome is filled in. */
static void finish_remote_request(struct remote_ledger *self, struct ledger_request *request)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    enum ledger_status status = request->outcome.any.status;
    bool is_append = request->operation == LEDGER_MESSAGE_APPEND;
    ledger_histogram_add(ledger_request_writes(request) ? &metrics->write_us : &metrics->read_us,
                         (uint64_t)clock_microseconds() - request->submitted_us);
    if (is_append && status == LEDGER_HALTED)
        ledger_count(&metrics->halted_appends);
    else if (is_append && status == LEDGER_OK)
        ledger_count(request->outcome.append.duplicate ? &metrics->duplicates : &metrics->appends);
    atomic_fetch_sub(&self->held, 1);
    request->next = NULL;
    *self->finished_end = request;
    self->finished_end = &request->next;
    loop_defer(&self->loop, &self->give_back);
}

static struct ledger_request *take_remote_slot(struct remote_ledger *self, uint32_t index)
{
    struct ledger_request *request = remote_slots_take(&self->slots, index);
    count_remote_waiting(self, request, -1);
    return request;
}

static void fail_remote_slot(struct remote_ledger *self, uint32_t index, enum ledger_status status)
{
    struct ledger_request *request = take_remote_slot(self, index);
    ledger_request_fail(request, status);
    finish_remote_request(self, request);
}

static void fail_all_remote_slots(struct remote_ledger *self)
{
    const struct list *in_flight = &self->slots.in_flight;
    while (!list_empty(in_flight))
        fail_remote_slot(self, remote_slots_index(&self->slots, in_flight->next),
                         LEDGER_UNAVAILABLE);
}

/* Stops the loop once nothing is held, or after REMOTE_LEDGER_CLOSE_MS. */
static void stop_remote_loop_if_closing(struct remote_ledger *self)
{
    if (!atomic_load(&self->closing))
        return;
    int64_t now_ms = self->loop.clock.now_ms;
    if (!self->closing_ms)
        self->closing_ms = now_ms;
    if (now_ms - self->closing_ms >= REMOTE_LEDGER_CLOSE_MS)
        fail_all_remote_slots(self);
    if (atomic_load(&self->held) == 0)
        loop_stop(&self->loop);
}

/* ---- sending ---- */

static bool is_request_abandoned(const struct ledger_request *request)
{
    return atomic_load_explicit(&request->abandoned, memory_order_relaxed);
}

static void send_remote_slot(struct remote_ledger *self, uint32_t index)
{
    struct remote_slot *slot = &self->slots.slots[index];
    if (slot->sends++ == REMOTE_LEDGER_SENDS_MAX) {
        fail_remote_slot(self, index, LEDGER_UNAVAILABLE);
        return;
    }
    buffer_clear(&self->frame);
    ledger_wire_encode_request(&self->frame, remote_slots_id(&self->slots, index), slot->request);
    struct slice piece = buffer_slice(&self->frame);
    /* A link that has just broken reports it next; the slot is then sent again. */
    if (self->frame.failed ||
        (!peer_dialer_send(self->dialer, &piece, 1) && peer_dialer_queued_bytes(self->dialer) > 0))
        fail_remote_slot(self, index, LEDGER_BUSY);
    if (self->frame.cap > FRAME_BYTES_KEPT)
        buffer_free(&self->frame);
}

static void on_remote_requests_submitted(void *arg, struct ledger_request *chain)
{
    struct remote_ledger *self = arg;
    while (chain) {
        struct ledger_request *request = chain;
        int reach = atomic_load(&self->reach);
        chain = request->next;
        if (reach == DOWN || is_request_abandoned(request)) {
            ledger_request_fail(request, LEDGER_UNAVAILABLE);
            finish_remote_request(self, request);
            continue;
        }
        count_remote_waiting(self, request, 1);
        uint32_t index = remote_slots_put(&self->slots, request);
        if (reach == UP)
            send_remote_slot(self, index);
    }
    stop_remote_loop_if_closing(self);
}

/* ---- the link ---- */

static void on_remote_link_opened(struct peer_dialer *dialer, void *arg, struct slice name)
{
    struct remote_ledger *self = arg;
    (void)dialer;
    log_info("ledger_reached", "name=%s in_flight=%zu", log_quote(name), self->slots.count);
    set_remote_reach(self, UP);
    struct list *at = self->slots.in_flight.next;
    while (at != &self->slots.in_flight) {
        uint32_t index = remote_slots_index(&self->slots, at);
        at = at->next;
        send_remote_slot(self, index);
    }
}

static void on_remote_frame(struct peer_dialer *dialer, void *arg, struct slice frame)
{
    struct remote_ledger *self = arg;
    struct ledger_wire_head head;
    struct slice body;
    uint32_t index;
    (void)dialer;
    if (!ledger_wire_decode_answer_head(frame, &head, &body)) {
        log_error("ledger_answer_refused", "reason=%s",
                  log_sentence(slice_of("not an answer of this version")));
        return;
    }
    if (!remote_slots_find(&self->slots, head.id, &index))
        return; /* its client has stopped waiting */
    struct ledger_request *request = take_remote_slot(self, index);
    if (!ledger_wire_decode_outcome(request, head.status, body)) {
        log_error("ledger_answer_refused", "operation=%s",
                  ledger_request_operation_name(request->operation));
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
    }
    finish_remote_request(self, request);
}

static void on_remote_link_closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    struct remote_ledger *self = arg;
    (void)dialer;
    if (atomic_load(&self->reach) != UP)
        return;
    log_error("ledger_lost", "reason=%s in_flight=%zu", log_sentence(slice_of(why)),
              self->slots.count);
    set_remote_reach(self, DOWN);
}

static const struct peer_dialer_owner dialer_owner = {.on_opened = on_remote_link_opened,
                                                      .on_frame = on_remote_frame,
                                                      .on_closed = on_remote_link_closed};

/* ---- time ---- */

static void fail_abandoned_remote_slots(struct remote_ledger *self)
{
    struct list *at = self->slots.in_flight.next;
    while (at != &self->slots.in_flight) {
        uint32_t index = remote_slots_index(&self->slots, at);
        at = at->next;
        if (is_request_abandoned(self->slots.slots[index].request))
            fail_remote_slot(self, index, LEDGER_TIMEOUT);
    }
}

static void on_remote_sweep_due(struct wheel_timer *timer)
{
    struct remote_ledger *self = CONTAINER_OF(timer, struct remote_ledger, sweep);
    int64_t now_ms = self->loop.clock.now_ms;
    int64_t out_of_reach_ms = now_ms - self->down_ms;
    int reach = atomic_load(&self->reach);
    if (reach == UNTRIED && out_of_reach_ms >= REMOTE_LEDGER_FIRST_LINK_MS) {
        log_error("ledger_out_of_reach", "in_flight=%zu", self->slots.count);
        set_remote_reach(self, DOWN);
        fail_all_remote_slots(self);
    } else if (reach == DOWN && out_of_reach_ms >= REMOTE_LEDGER_RESEND_MS) {
        fail_all_remote_slots(self);
    } else {
        fail_abandoned_remote_slots(self);
    }
    stop_remote_loop_if_closing(self);
    loop_set_timer(&self->loop, &self->sweep, now_ms + SWEEP_MS);
}

/* ---- life ---- */

static void *remote_ledger_main(void *arg)
{
    struct remote_ledger *self = arg;
    loop_run(&self->loop);
    return NULL;
}

/* Frees whatever exists. The thread has ended or never ran. */
static void free_remote_ledger(struct remote_ledger *self)
{
    set_remote_reach(self, DOWN);
    peer_dialer_drop(&self->dialer);
    if (self->inbox.on_requests)
        ledger_request_inbox_free(&self->inbox);
    fail_all_remote_slots(self);
    run_remote_give_back(&self->give_back);
    if (self->streams.loop)
        stream_set_free(&self->streams);
    if (self->loop.read_buffer)
        loop_free(&self->loop);
    tls_context_drop(&self->tls);
    buffer_free(&self->frame);
    free(self);
}

static void remote_ledger_close(struct ledger *ledger)
{
    struct remote_ledger *self = (struct remote_ledger *)ledger;
    atomic_store(&self->closing, true);
    ledger_request_inbox_wake(&self->inbox);
    pthread_join(self->thread, NULL);
    free_remote_ledger(self);
}

static const struct ledger_backend remote_backend = {.submit = remote_ledger_submit,
                                                     .close = remote_ledger_close};

static bool start_remote_ledger(struct remote_ledger *self,
                                const struct remote_ledger_options *options)
{
    if (!loop_init(&self->loop) || !stream_set_init(&self->streams, &self->loop) ||
        !ledger_request_inbox_init(&self->inbox, &self->loop, on_remote_requests_submitted, self))
        return false;
    struct peer_link_options linking = {.loop = &self->loop,
                                        .streams = &self->streams,
                                        .random = &self->random,
                                        .secret = options->secret,
                                        .name = options->name,
                                        .tls = self->tls};
    self->down_ms = self->loop.clock.now_ms;
    self->dialer = peer_dialer_make(&linking, options->address, &dialer_owner, self);
    loop_set_timer(&self->loop, &self->sweep, self->down_ms + SWEEP_MS);
    return self->dialer && pthread_create(&self->thread, NULL, remote_ledger_main, self) == 0;
}

struct ledger *remote_ledger_open(const struct remote_ledger_options *options)
{
    struct remote_ledger *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->base.backend = &remote_backend;
    self->finished_end = &self->finished;
    self->give_back.run = run_remote_give_back;
    self->sweep.fire = on_remote_sweep_due;
    random_init_system(&self->random);
    remote_slots_init(&self->slots);
    self->tls = options->tls ? tls_context_share(options->tls) : NULL;
    if (start_remote_ledger(self, options))
        return &self->base;
    free_remote_ledger(self);
    return NULL;
}
