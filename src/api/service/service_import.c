#include "api/service/service_import.h"

#include <stdlib.h>

static int64_t import_now_ms(const struct import *import)
{
    return import->sessions->loop->clock.now_ms;
}

bool service_import_is_retried(enum ledger_status status)
{
    return status == LEDGER_BUSY || status == LEDGER_TIMEOUT || status == LEDGER_UNAVAILABLE;
}

/* ---- the ring of batches ---- */

static struct import_batch *batch_at(struct import *import, unsigned number)
{
    return &import->batches[number % IMPORT_BATCHES];
}

/* There is always a free batch after the one that is filling. */
static void close_filling_batch(struct import *import)
{
    struct import_batch *batch = batch_at(import, import->filling);
    if (batch->count == 0)
        return;
    batch->state = IMPORT_BATCH_READY;
    batch = batch_at(import, ++import->filling);
    batch->state = IMPORT_BATCH_FILLING;
    batch->count = 0;
    buffer_clear(&batch->bytes);
}

static void add_to_batch(struct import *import, const struct import_line *line)
{
    struct import_batch *batch = batch_at(import, import->filling);
    if (batch->count && batch->kind != line->kind) {
        close_filling_batch(import);
        batch = batch_at(import, import->filling);
    }
    batch->kind = line->kind;
    for (size_t i = 0; i < 2; i++) {
        batch->lengths[2 * batch->count + i] = (uint8_t)line->pair[i].len;
        buffer_append_slice(&batch->bytes, line->pair[i]);
    }
    batch->lines[batch->count++] = import->lines.line;
    if (batch->count == LEDGER_RELATIONS_MAX)
        close_filling_batch(import);
}

static const char *relation_problem(enum import_kind kind, enum ledger_status status)
{
    if (status == LEDGER_FORBIDDEN)
        return "one of the two has blocked the other";
    if (status == LEDGER_LIMIT)
        return kind == IMPORT_CONTACT ? "one of the two has 10000 contacts already"
                                      : "the user has blocked 10000 users already";
    return ledger_status_name(status);
}

static void report_batch(struct import_batch *batch, const struct ledger_relations_outcome *outcome)
{
    struct import_report *report = &batch->import->report;
    for (size_t i = 0; i < batch->count; i++) {
        enum ledger_status status =
            outcome->status == LEDGER_OK ? outcome->results[i].status : outcome->status;
        if (status == LEDGER_OK)
            report->counts[batch->kind]++;
        else
            import_report_error(report, batch->lines[i], relation_problem(batch->kind, status));
    }
    metrics_add(batch->import->sessions->metrics, METRIC_IMPORT_LINES, batch->count);
}

static void on_import_batch_changed(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct import_batch *batch = arg;
    struct import *import = batch->import;
    import->batches_sent--;
    if (service_import_is_retried(outcome->status)) {
        batch->state = IMPORT_BATCH_READY;
        service_import_failed(import);
    } else {
        import->failing_since_ms = 0;
        batch->state = IMPORT_BATCH_DONE;
        report_batch(batch, outcome);
        import_report_log(&import->report, import_now_ms(import), false);
    }
    while (import->oldest != import->filling &&
           batch_at(import, import->oldest)->state == IMPORT_BATCH_DONE)
        import->oldest++;
    service_import_advance(import);
}

static void send_batch(struct import_batch *batch)
{
    struct slice ids[2 * LEDGER_RELATIONS_MAX];
    const char *at = batch->bytes.data;
    for (size_t i = 0; i < 2 * batch->count; i++) {
        ids[i] = (struct slice){at, batch->lengths[i]};
        at += batch->lengths[i];
    }
    batch->state = IMPORT_BATCH_SENT;
    batch->import->batches_sent++;
    relation_changes_start(batch->import->sessions,
                           batch->kind == IMPORT_CONTACT ? LEDGER_CONTACT_MAKE : LEDGER_BLOCK_MAKE,
                           ids, batch->count, on_import_batch_changed, batch);
}

/* Sends ready batches in order; one of another kind waits until those before it are done. */
static void send_batches(struct import *import)
{
    const struct import_batch *under_way = NULL;
    for (unsigned i = import->oldest; i != import->filling; i++) {
        struct import_batch *batch = batch_at(import, i);
        if (batch->state == IMPORT_BATCH_DONE)
            continue;
        if (under_way && under_way->kind != batch->kind)
            return;
        under_way = batch;
        if (batch->state == IMPORT_BATCH_READY && import->batches_sent < IMPORT_BATCHES_SENT)
            send_batch(batch);
    }
}

/* ---- lines ---- */

static bool has_import_space(const struct import *import)
{
    return import->filling - import->oldest < IMPORT_BATCHES - 1 &&
           import->singles < IMPORT_SINGLES_MAX && !import->is_retrying;
}

static void take_import_line(struct import *import, struct slice text)
{
    struct import_line line;
    size_t at = 0;
    while (at < text.len &&
           (text.data[at] == ' ' || text.data[at] == '\t' || text.data[at] == '\r'))
        at++;
    if (at == text.len)
        return;
    const char *problem = import_line_read(text, &line);
    if (problem)
        import_report_error(&import->report, import->lines.line, problem);
    else if (line.kind == IMPORT_CONTACT || line.kind == IMPORT_BLOCK)
        add_to_batch(import, &line);
    else
        service_import_single(import, &line);
}

/* Takes lines as long as there is space for what they say. A batch that is not full is sent only if nothing else is. */
static void take_import_lines(struct import *import)
{
    enum import_lines_result result = IMPORT_LINES_LINE;
    struct slice text;
    while (result != IMPORT_LINES_NEED_MORE && has_import_space(import)) {
        result = import_lines_next(&import->lines, import->body_ended, &text);
        if (result == IMPORT_LINES_LINE)
            take_import_line(import, text);
        else if (result == IMPORT_LINES_TOO_LONG)
            import_report_error(&import->report, import->lines.line, "the line is too long");
    }
    if (result == IMPORT_LINES_NEED_MORE && (import->batches_sent == 0 || import->body_ended))
        close_filling_batch(import);
}

/* ---- the end ---- */

static bool is_import_idle(const struct import *import)
{
    return import->batches_sent == 0 && import->singles == 0;
}

static void free_import(struct import *import)
{
    loop_cancel_timer(import->sessions->loop, &import->retry);
    import->context->import_count--;
    import_lines_free(&import->lines);
    for (unsigned i = 0; i < IMPORT_BATCHES; i++)
        buffer_free(&import->batches[i].bytes);
    free(import);
}

static bool has_import_failed(const struct import *import)
{
    bool failed = import->lines.buffer.failed;
    for (unsigned i = 0; i < IMPORT_BATCHES; i++)
        failed |= import->batches[i].bytes.failed;
    return failed || (import->failing_since_ms &&
                      import_now_ms(import) - import->failing_since_ms > IMPORT_PATIENCE_MS);
}

static void answer_import(struct import *import)
{
    struct buffer json = BUFFER_INIT;
    import_report_log(&import->report, import_now_ms(import), true);
    import_report_write(&import->report, &json);
    exchange_watch(import->exchange, NULL, NULL);
    exchange_reply_json(&import->exchange, 200, &json);
}

static void abandon_import(struct import *import)
{
    import_report_log(&import->report, import_now_ms(import), true);
    exchange_watch(import->exchange, NULL, NULL);
    exchange_error(&import->exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                   "the ledger does not answer: send the file again, which does no harm");
}

/* Frees the import when nothing of it is left. */
static void end_import_if_done(struct import *import)
{
    bool is_done = import->body_ended && import->lines.at == import->lines.buffer.len &&
                   import->oldest == import->filling &&
                   batch_at(import, import->filling)->count == 0;
    if (import->exchange && has_import_failed(import))
        abandon_import(import);
    else if (import->exchange && is_done && is_import_idle(import))
        answer_import(import);
    if (!import->exchange)
        service_import_drop_singles(import);
    if (!import->exchange && is_import_idle(import))
        free_import(import);
}

/* ---- going on ---- */

/* Returns whether the body was resumed, so that more lines may have come. */
static bool pause_or_resume_body(struct import *import)
{
    if (import->body_ended || !import->exchange)
        return false;
    bool has_space = has_import_space(import);
    if (!has_space && !import->body_paused) {
        import->body_paused = true;
        exchange_pause_body(import->exchange);
    }
    if (!has_space || !import->body_paused)
        return false;
    import->body_paused = false;
    exchange_resume_body(import->exchange);
    return true;
}

/* Completions, and the body when it is resumed, may run inside; only the outermost call goes on. */
void service_import_advance(struct import *import)
{
    if (import->advancing)
        return;
    import->advancing = true;
    do {
        if (import->exchange)
            take_import_lines(import);
        if (import->exchange && !import->is_retrying)
            send_batches(import);
    } while (pause_or_resume_body(import));
    import->advancing = false;
    end_import_if_done(import);
}

static void on_import_retry(struct wheel_timer *timer)
{
    struct import *import = CONTAINER_OF(timer, struct import, retry);
    import->is_retrying = false;
    import->advancing = true; /* completions may run inside */
    if (import->exchange)
        service_import_retry_singles(import);
    import->advancing = false;
    service_import_advance(import);
}

void service_import_failed(struct import *import)
{
    int64_t now_ms = import_now_ms(import);
    if (!import->failing_since_ms) {
        import->failing_since_ms = now_ms;
        import->backoff_ms = IMPORT_BACKOFF_MS;
    }
    if (import->is_retrying)
        return;
    import->is_retrying = true;
    loop_set_timer(import->sessions->loop, &import->retry, now_ms + import->backoff_ms);
    if (import->backoff_ms < IMPORT_BACKOFF_MAX_MS)
        import->backoff_ms *= 2;
}

/* ---- the body ---- */

static void on_import_bytes(void *arg, struct slice bytes)
{
    struct import *import = arg;
    import_lines_add(&import->lines, bytes);
    service_import_advance(import);
}

static void on_import_body_end(void *arg)
{
    struct import *import = arg;
    import->body_ended = true;
    service_import_advance(import);
}

/* The client has left, or was refused: what is under way still ends. */
static void on_import_exchange_ended(void *arg, bool answered)
{
    struct import *import = arg;
    (void)answered;
    import_report_log(&import->report, import_now_ms(import), true);
    import->exchange = NULL;
    service_import_advance(import);
}

void service_import_post(struct exchange *exchange)
{
    static const struct exchange_body_sink sink = {on_import_bytes, on_import_body_end};
    struct api_context *context = api_context_of(exchange);
    struct import *import = context->import_count < IMPORTS_MAX ? calloc(1, sizeof(*import)) : NULL;
    if (!import) {
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many imports are under way");
        return;
    }
    context->import_count++;
    import->exchange = exchange;
    import->context = context;
    import->sessions = context->sessions;
    import->retry.fire = on_import_retry;
    import->report.started_ms = import_now_ms(import);
    list_init(&import->retries);
    import_lines_init(&import->lines, context->sessions->config->gateway.http.max_list_body_bytes);
    for (unsigned i = 0; i < IMPORT_BATCHES; i++)
        import->batches[i].import = import;
    exchange_watch(exchange, on_import_exchange_ended, import);
    exchange_stream_body(exchange, &sink, import);
}
