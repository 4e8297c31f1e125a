/* The feed's conformance suite on the local feed, over a scripted ledger that keeps an outbox. */
#include "conformance/feed_suite.h"
#include "feed/local/local_feed.h"
#include "support/script_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OUTBOX_MAX = 1024, TURN_MS = 100 };

struct local_backend {
    struct feed_backend backend;
    struct script_ledger script;
    struct metrics metrics;
    struct random random;
    struct local_feed *feed;
    struct ledger_message outbox[OUTBOX_MAX];
    size_t count;
    size_t dead_letters;
};

static void leave_outbox(struct local_backend *self, uint64_t sequence)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->count; i++)
        if (self->outbox[i].sequence != sequence)
            self->outbox[kept++] = self->outbox[i];
    self->count = kept;
}

static void answer_local_request(void *arg, struct ledger_request *request)
{
    struct local_backend *self = arg;
    if (request->operation == LEDGER_OUTBOX_LIST) {
        size_t limit = request->input.limit;
        request->outcome.messages.messages = self->outbox;
        request->outcome.messages.count = self->count < limit ? self->count : limit;
        request->outcome.messages.has_more = self->count > limit;
    } else if (request->operation == LEDGER_OUTBOX_REMOVE) {
        for (size_t i = 0; i < request->input.position_count; i++)
            leave_outbox(self, request->input.positions[i].sequence);
    } else if (request->operation == LEDGER_DEAD_LETTER_PUT) {
        self->dead_letters++;
        leave_outbox(self, request->input.sequence);
    }
}

static void open_local_backend(struct feed_backend *backend, feed_item_handler on_item, void *arg)
{
    struct local_backend *self = (struct local_backend *)backend;
    struct local_feed_options options = {.ledger = &self->script.client,
                                         .metrics = &self->metrics,
                                         .random = &self->random,
                                         .replays = true,
                                         .replay_page = 100,
                                         .started_at_ms = self->script.clock.wall_ms};
    self->feed = local_feed_make(&options, on_item, arg);
    assert_non_null(self->feed);
    backend->producer = local_feed_producer(self->feed);
    backend->consumer = local_feed_consumer(self->feed);
}

static void turn_local_backend(struct feed_backend *backend)
{
    struct local_backend *self = (struct local_backend *)backend;
    self->script.clock.now_ms += TURN_MS;
    self->script.clock.wall_ms += TURN_MS;
    local_feed_tick(self->feed);
    script_ledger_turn(&self->script);
}

static void stop_local_backend(struct feed_backend *backend)
{
    local_feed_stop(((struct local_backend *)backend)->feed);
}

static void close_local_backend(struct feed_backend *backend)
{
    struct local_backend *self = (struct local_backend *)backend;
    local_feed_stop(self->feed);
    script_ledger_turn(&self->script);
    local_feed_free(&self->feed);
}

/* The texts of the suite's events are constants. */
static void store_in_outbox(struct feed_backend *backend, const struct feed_event *event)
{
    struct local_backend *self = (struct local_backend *)backend;
    assert_true(self->count < OUTBOX_MAX);
    self->outbox[self->count++] = (struct ledger_message){.chat = event->chat,
                                                          .id = event->message_id,
                                                          .sender = event->sender,
                                                          .body = event->body,
                                                          .sequence = event->sequence,
                                                          .sent_at_ms = event->sent_at_ms};
}

static size_t count_local_dead_letters(struct feed_backend *backend)
{
    return ((struct local_backend *)backend)->dead_letters;
}

static int64_t local_backend_now_ms(struct feed_backend *backend)
{
    return ((struct local_backend *)backend)->script.clock.now_ms;
}

static struct feed_backend *make_local_backend(void)
{
    struct local_backend *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    script_ledger_init(&self->script);
    self->script.answer = answer_local_request;
    self->script.arg = self;
    random_init_seeded(&self->random, 7);
    self->backend = (struct feed_backend){
        .open = open_local_backend,
        .close = close_local_backend,
        .stop = stop_local_backend,
        .store = store_in_outbox,
        .turn = turn_local_backend,
        .dead_letters = count_local_dead_letters,
        .now_ms = local_backend_now_ms,
    };
    return &self->backend;
}

static void free_local_backend(struct feed_backend *backend)
{
    free(backend);
}

int main(void)
{
    return feed_suite_run(make_local_backend, free_local_backend);
}
