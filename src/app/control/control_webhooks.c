#include "app/control/control_webhooks.h"

#include "base/buffer.h"
#include "ledger/ledger_events.h"
#include "log/log.h"
#include "text/time_text.h"
#include "webhooks/webhook_event.h"

#include <stdlib.h>

/* A call while the ledger works: page by page through the dead letters. */
struct webhooks_call {
    struct ledger_client *ledger;
    control_done done;
    void *arg;
    bool replays;
    size_t id_count; /* 0: all */
    bool found[CONTROL_ARGUMENTS_MAX];
    char ids[CONTROL_ARGUMENTS_MAX][WEBHOOK_EVENT_ID_BYTES];
    struct buffer output;
    char queue[LEDGER_ID_BYTES_MAX]; /* of the last letter that was seen */
    size_t queue_len;
    char position[LEDGER_EVENT_POSITION_BYTES_MAX];
    size_t position_len;
    size_t pending; /* replays */
    size_t replayed;
    bool has_more;
    bool failed;
};

static void list_dead_page(struct webhooks_call *call);

static void end_webhooks_call(struct webhooks_call *call)
{
    const char *error = call->failed || call->output.failed ? "the ledger does not answer" : NULL;
    for (size_t i = 0; !error && i < call->id_count; i++)
        if (!call->found[i])
            error = "there is no dead letter with one of these ids";
    if (call->replays)
        buffer_printf(&call->output, "%zu put back\n", call->replayed);
    call->done(call->arg, error != NULL, buffer_slice(&call->output),
               error ? slice_of(error) : SLICE_NONE);
    buffer_free(&call->output);
    free(call);
}

static void proceed_webhooks_call(struct webhooks_call *call)
{
    if (call->pending)
        return;
    if (call->has_more && !call->failed)
        list_dead_page(call);
    else
        end_webhooks_call(call);
}

/* ---- one letter ---- */

static void write_dead_event(struct buffer *out, const struct ledger_event *event,
                             const char id[WEBHOOK_EVENT_ID_BYTES])
{
    char time[TIME_TEXT_LEN];
    time_text_write(time, event->time_ms);
    buffer_append(out, id, WEBHOOK_EVENT_ID_BYTES);
    buffer_printf(out, "\t%.*s\t%s\t%.*s\t%.*s\n", (int)sizeof(time), time,
                  ledger_event_type_name(event->type), SLICE_FORMAT(event->queue),
                  SLICE_FORMAT(event->reason));
}

static bool is_event_named(struct webhooks_call *call, const char id[WEBHOOK_EVENT_ID_BYTES])
{
    bool named = call->id_count == 0;
    for (size_t i = 0; i < call->id_count; i++)
        if (memcmp(call->ids[i], id, WEBHOOK_EVENT_ID_BYTES) == 0)
            named = call->found[i] = true;
    return named;
}

static void on_dead_event_replayed(void *arg, const struct ledger_change_outcome *outcome)
{
    struct webhooks_call *call = arg;
    call->pending--;
    call->failed |= outcome->status != LEDGER_OK;
    call->replayed += outcome->status == LEDGER_OK && outcome->changed;
    proceed_webhooks_call(call);
}

/* ---- pages ---- */

static void keep_place(struct webhooks_call *call, const struct ledger_event *last)
{
    call->queue_len = last->queue.len;
    memcpy(call->queue, last->queue.data, last->queue.len);
    call->position_len = last->position.len;
    memcpy(call->position, last->position.data, last->position.len);
}

static void on_dead_page_read(void *arg, const struct ledger_events_outcome *outcome)
{
    struct webhooks_call *call = arg;
    call->failed = outcome->status != LEDGER_OK;
    call->has_more = outcome->has_more && outcome->count > 0;
    call->pending = 1; /* this function */
    for (size_t i = 0; i < outcome->count; i++) {
        const struct ledger_event *event = &outcome->events[i];
        char id[WEBHOOK_EVENT_ID_BYTES];
        webhook_event_id(id, event->type, event->time_ms, event->subject, event->data);
        if (!call->replays) {
            write_dead_event(&call->output, event, id);
        } else if (is_event_named(call, id)) {
            call->pending++;
            ledger_dead_events_replay(call->ledger, event->queue, &event->position, 1,
                                      on_dead_event_replayed, call);
        }
    }
    if (outcome->count)
        keep_place(call, &outcome->events[outcome->count - 1]);
    call->pending--;
    proceed_webhooks_call(call);
}

static void list_dead_page(struct webhooks_call *call)
{
    ledger_dead_events_list(call->ledger, (struct slice){call->queue, call->queue_len},
                            (struct slice){call->position, call->position_len}, 0,
                            on_dead_page_read, call);
}

/* ---- the command ---- */

void control_webhooks_run(const struct control_call *call)
{
    struct slice action = call->count > 1 ? call->arguments[1] : SLICE("list");
    bool lists = slice_is(action, "list") && call->count <= 2;
    if (!lists && !slice_is(action, "replay")) {
        control_call_fail(call, "wrong arguments");
        return;
    }
    struct webhooks_call *made = calloc(1, sizeof(*made));
    if (!made) {
        control_call_fail(call, "out of memory");
        return;
    }
    made->ledger = call->ledger;
    made->done = call->done;
    made->arg = call->arg;
    made->replays = !lists;
    for (size_t i = 2; i < call->count; i++) {
        struct slice id = slice_first(call->arguments[i], WEBHOOK_EVENT_ID_BYTES);
        memcpy(made->ids[made->id_count++], id.data, id.len);
    }
    if (made->replays)
        log_info("webhooks_replayed", "ids=%zu", made->id_count);
    list_dead_page(made);
}
