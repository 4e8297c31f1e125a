#include "base/container.h"
#include "ledger/refusal.h"

const char *ledger_status_name(enum ledger_status status)
{
    static const char *const names[LEDGER_STATUS_COUNT] = {
        [LEDGER_OK] = "ok",
        [LEDGER_INVALID] = "invalid",
        [LEDGER_NOT_FOUND] = "not_found",
        [LEDGER_CONFLICT] = "conflict",
        [LEDGER_FORBIDDEN] = "forbidden",
        [LEDGER_LIMIT] = "limit",
        [LEDGER_HALTED] = "halted",
        [LEDGER_BUSY] = "busy",
        [LEDGER_TIMEOUT] = "timeout",
        [LEDGER_UNAVAILABLE] = "unavailable",
    };
    return names[status];
}

const struct ledger_metrics *ledger_metrics(const struct ledger *ledger)
{
    return &ledger_innermost((struct ledger *)ledger)->metrics;
}

int64_t ledger_retry_after_ms(const struct ledger_client *client)
{
    struct ledger *ledger = client->ledger;
    if (client->closed)
        return 0;
    return ledger->backend->retry_after_ms ? ledger->backend->retry_after_ms(ledger) : 0;
}

void ledger_close(struct ledger **ledger)
{
    if (*ledger)
        (*ledger)->backend->close(*ledger);
    *ledger = NULL;
}

/* ---- clients ---- */

void ledger_client_init(struct ledger_client *client, struct ledger *ledger,
                        const struct clock *clock, ledger_post_hook post, void *post_arg)
{
    *client = (struct ledger_client){.ledger = ledger,
                                     .clock = clock,
                                     .post = post,
                                     .post_arg = post_arg,
                                     .time_limit_ms = LEDGER_TIME_LIMIT_MS};
    list_init(&client->unanswered);
}

void ledger_client_close(struct ledger_client *client)
{
    client->closed = true;
}

bool ledger_client_is_owed(const struct ledger_client *client)
{
    return client->outstanding > 0 || client->refusal_count > 0;
}

static struct ledger_request *oldest_unanswered_request(const struct ledger_client *client)
{
    if (list_empty(&client->unanswered))
        return NULL;
    return CONTAINER_OF(client->unanswered.next, struct ledger_request, unanswered);
}

int64_t ledger_client_deadline_ms(const struct ledger_client *client)
{
    const struct ledger_request *oldest = oldest_unanswered_request(client);
    if (client->refusal_count)
        return client->clock->now_ms;
    return oldest ? oldest->deadline_ms : INT64_MAX;
}

void ledger_client_expire(struct ledger_client *client)
{
    int64_t now_ms = client->clock->now_ms;
    struct ledger_request *request;
    refusal_answer_all(client);
    while ((request = oldest_unanswered_request(client)) && request->deadline_ms <= now_ms) {
        list_remove(&request->unanswered);
        ledger_count(&ledger_innermost(client->ledger)->metrics.timeouts);
        ledger_request_observe(request, LEDGER_TIMEOUT);
        atomic_store_explicit(&request->abandoned, true, memory_order_relaxed);
        /* The backend may be writing into the request's own outcome. */
        ledger_request_answer_status(request->operation, request->done, request->arg,
                                     LEDGER_TIMEOUT);
    }
}

void ledger_complete(struct ledger_request *chain)
{
    while (chain) {
        struct ledger_request *next = chain->next;
        chain->client->outstanding--;
        bool unanswered = !list_empty(&chain->unanswered);
        list_remove(&chain->unanswered);
        if (unanswered)
            ledger_request_answer(chain);
        ledger_request_free(chain);
        chain = next;
    }
}
