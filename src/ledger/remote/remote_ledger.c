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
    _Atomic int reach;   /* an enum reach; written by the thread alone */
    _Atomic size_t held; /* taken and not finished */
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
    struct buffer frame;             /* where requests are encoded, one at a time */
    struct ledger_request *finished; /* given back at the end of the turn */
    struct loop_task give_back;
    struct wheel_timer sweep;
    int64_t down_ms;    /* since when; at the start, since the start */
    int64_t closing_ms; /* since when; 0: not yet */
};

static uint64_t now_us(void)
{
    return (uint64_t)clock_microseconds();
}

/* The one door for a change of reach. */
static void set_reach(struct remote_ledger *self, enum reach reach)
{
    atomic_store(&self->reach, (int)reach);
    atomic_store_explicit(&self->base.metrics.available, reach == UP, memory_order_relaxed);
    if (reach == DOWN)
        self->down_ms = self->loop.clock.now_ms;
}

/* ---- from any thread ---- */

static void submit(struct ledger *ledger, struct ledger_request *request)
{
    struct remote_ledger *self = (struct remote_ledger *)ledger;
    bool down = atomic_load(&self->reach) == DOWN;
    request->submitted_us = now_us();
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

static void give_back(struct loop_task *task)
{
    struct remote_ledger *self = CONTAINER_OF(task, struct remote_ledger, give_back);
    struct ledger_request *chain = self->finished;
    self->finished = NULL;
    ledger_request_finish(chain);
}

static void count_waiting(struct remote_ledger *self, const struct ledger_request *request,
                          int more)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    atomic_fetch_add_explicit(ledger_request_writes(request) ? &metrics->writes_waiting
                                                             : &metrics->reads_waiting,
                              more, memory_order_relaxed);
}

static void count_answer(struct remote_ledger *self, const struct ledger_request *request)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    bool writes = ledger_request_writes(request);
    ledger_histogram_add(writes ? &metrics->write_us : &metrics->read_us,
                         now_us() - request->submitted_us);
    if (request->operation != LEDGER_MESSAGE_APPEND)
        return;
    if (request->outcome.any.status == LEDGER_HALTED)
        ledger_count(&metrics->halted_appends);
    else if (request->outcome.any.status == LEDGER_OK)
        ledger_count(request->outcome.append.duplicate ? &metrics->duplicates : &metrics->appends);
}

/* Its outcome is filled in. */
static void finish(struct remote_ledger *self, struct ledger_request *request)
{
    count_answer(self, request);
    atomic_fetch_sub(&self->held, 1);
    request->next = self->finished;
    self->finished = request;
    loop_defer(&self->loop, &self->give_back);
}

static struct ledger_request *take_out(struct remote_ledger *self, uint32_t index)
{
    struct ledger_request *request = remote_slots_take(&self->slots, index);
    count_waiting(self, request, -1);
    return request;
}

static void fail_slot(struct remote_ledger *self, uint32_t index, enum ledger_status status)
{
    struct ledger_request *request = take_out(self, index);
    ledger_request_fail(request, status);
    finish(self, request);
}

static void fail_all(struct remote_ledger *self)
{
    for (uint32_t i = 0; i < self->slots.used_end; i++)
        if (self->slots.slots[i].request)
            fail_slot(self, i, LEDGER_UNAVAILABLE);
}

/* Only once nothing is held, or too much time has passed. */
static void end_if_closing(struct remote_ledger *self)
{
    if (!atomic_load(&self->closing))
        return;
    int64_t now_ms = self->loop.clock.now_ms;
    if (!self->closing_ms)
        self->closing_ms = now_ms;
    if (now_ms - self->closing_ms >= REMOTE_LEDGER_CLOSE_MS)
        fail_all(self);
    if (atomic_load(&self->held) == 0)
        loop_stop(&self->loop);
}

/* ---- sending ---- */

static bool is_abandoned(const struct ledger_request *request)
{
    return atomic_load_explicit(&request->abandoned, memory_order_relaxed);
}

static void send_slot(struct remote_ledger *self, uint32_t index)
{
    struct remote_slot *slot = &self->slots.slots[index];
    if (slot->sends++ == REMOTE_LEDGER_SENDS_MAX) {
        fail_slot(self, index, LEDGER_UNAVAILABLE);
        return;
    }
    buffer_clear(&self->frame);
    ledger_wire_encode_request(&self->frame, remote_slots_id(&self->slots, index), slot->request);
    struct slice piece = buffer_slice(&self->frame);
    /* a link that has just broken tells so next; the slot is sent again then */
    if (self->frame.failed ||
        (!peer_dialer_send(self->dialer, &piece, 1) && peer_dialer_queued_bytes(self->dialer) > 0))
        fail_slot(self, index, LEDGER_BUSY);
    if (self->frame.cap > FRAME_BYTES_KEPT)
        buffer_free(&self->frame);
}

static void take_request(struct remote_ledger *self, struct ledger_request *request)
{
    int reach = atomic_load(&self->reach);
    if (reach == DOWN || is_abandoned(request)) {
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
        finish(self, request);
        return;
    }
    count_waiting(self, request, 1);
    uint32_t index = remote_slots_put(&self->slots, request);
    if (reach == UP)
        send_slot(self, index);
}

static void taken(void *arg, struct ledger_request *chain)
{
    struct remote_ledger *self = arg;
    while (chain) {
        struct ledger_request *next = chain->next;
        take_request(self, chain);
        chain = next;
    }
    end_if_closing(self);
}

/* ---- the link ---- */

static void opened(struct peer_dialer *dialer, void *arg, struct slice name)
{
    struct remote_ledger *self = arg;
    (void)dialer;
    log_info("ledger_reached", "name=%s in_flight=%zu", log_quote(name), self->slots.count);
    set_reach(self, UP);
    for (uint32_t i = 0; i < self->slots.used_end; i++)
        if (self->slots.slots[i].request)
            send_slot(self, i);
}

static void received(struct peer_dialer *dialer, void *arg, struct slice frame)
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
        return; /* its time was up */
    struct ledger_request *request = take_out(self, index);
    if (!ledger_wire_decode_outcome(request, head.status, body)) {
        log_error("ledger_answer_refused", "operation=%s", ledger_request_name(request));
        ledger_request_fail(request, LEDGER_UNAVAILABLE);
    }
    finish(self, request);
}

static void closed(struct peer_dialer *dialer, void *arg, const char *why)
{
    struct remote_ledger *self = arg;
    (void)dialer;
    if (atomic_load(&self->reach) != UP)
        return;
    log_error("ledger_lost", "reason=%s in_flight=%zu", log_sentence(slice_of(why)),
              self->slots.count);
    set_reach(self, DOWN);
}

static const struct peer_dialer_owner dialer_owner = {
    .on_opened = opened, .on_frame = received, .on_closed = closed};

/* ---- time ---- */

static void end_abandoned(struct remote_ledger *self)
{
    for (uint32_t i = 0; i < self->slots.used_end; i++)
        if (self->slots.slots[i].request && is_abandoned(self->slots.slots[i].request))
            fail_slot(self, i, LEDGER_TIMEOUT);
}

static void sweep(struct wheel_timer *timer)
{
    struct remote_ledger *self = CONTAINER_OF(timer, struct remote_ledger, sweep);
    int64_t now_ms = self->loop.clock.now_ms;
    int64_t out_of_reach_ms = now_ms - self->down_ms;
    int reach = atomic_load(&self->reach);
    if (reach == UNTRIED && out_of_reach_ms >= REMOTE_LEDGER_FIRST_LINK_MS) {
        log_error("ledger_out_of_reach", "in_flight=%zu", self->slots.count);
        set_reach(self, DOWN);
        fail_all(self);
    } else if (reach == DOWN && out_of_reach_ms >= REMOTE_LEDGER_RESEND_MS) {
        fail_all(self);
    } else {
        end_abandoned(self);
    }
    end_if_closing(self);
    loop_set_timer(&self->loop, &self->sweep, now_ms + SWEEP_MS);
}

/* ---- life ---- */

static void *run(void *arg)
{
    struct remote_ledger *self = arg;
    loop_run(&self->loop);
    return NULL;
}

/* Of one whose thread has ended, or never ran; undoes what there is. */
static void free_parts(struct remote_ledger *self)
{
    set_reach(self, DOWN);
    peer_dialer_drop(&self->dialer);
    if (self->inbox.taken)
        ledger_request_inbox_free(&self->inbox);
    fail_all(self);
    give_back(&self->give_back);
    if (self->streams.loop)
        stream_set_free(&self->streams);
    if (self->loop.read_buffer)
        loop_free(&self->loop);
    tls_context_drop(&self->tls);
    buffer_free(&self->frame);
    free(self);
}

static void close_ledger(struct ledger *ledger)
{
    struct remote_ledger *self = (struct remote_ledger *)ledger;
    atomic_store(&self->closing, true);
    ledger_request_inbox_wake(&self->inbox);
    pthread_join(self->thread, NULL);
    free_parts(self);
}

static const struct ledger_backend remote_backend = {.submit = submit, .close = close_ledger};

static bool start(struct remote_ledger *self, const struct remote_ledger_options *options)
{
    if (!loop_init(&self->loop) || !stream_set_init(&self->streams, &self->loop) ||
        !ledger_request_inbox_init(&self->inbox, &self->loop, taken, self))
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
    return self->dialer && pthread_create(&self->thread, NULL, run, self) == 0;
}

struct ledger *remote_ledger_open(const struct remote_ledger_options *options)
{
    struct remote_ledger *self = calloc(1, sizeof(*self));
    if (!self)
        return NULL;
    self->base.backend = &remote_backend;
    self->give_back.run = give_back;
    self->sweep.fire = sweep;
    random_init_system(&self->random);
    remote_slots_init(&self->slots);
    self->tls = options->tls ? tls_context_share(options->tls) : NULL;
    if (start(self, options))
        return &self->base;
    free_parts(self);
    return NULL;
}
