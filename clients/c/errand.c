/* Commands that are repeated until they are answered. */
#include "client.h"

void errand_want(struct errand *errand, int64_t now_ms)
{
    if (!errand->wanted)
        *errand = (struct errand){.wanted = true, .due_ms = now_ms};
}

unsigned errand_number(struct rollcall *client, struct errand *errand)
{
    if (++client->last_number == 0)
        client->last_number++;
    return errand->number = client->last_number;
}

void errand_reset(struct errand *errand, bool wanted)
{
    *errand = (struct errand){.wanted = wanted};
}

bool errand_is_due(const struct errand *errand, int64_t now_ms)
{
    return errand->wanted && errand->due_ms <= now_ms;
}

void errand_sent(struct rollcall *client, struct errand *errand, bool sent)
{
    errand->due_ms = client->clock.now_ms + (sent ? CLIENT_REPLY_MS : CLIENT_RETRY_MIN_MS);
}

void errand_answered(struct errand *errand)
{
    errand_reset(errand, false);
}

void errand_refused(struct rollcall *client, struct errand *errand, int64_t after_ms)
{
    int64_t wait_ms = after_ms > 0 ? after_ms : client_backoff_ms(client, errand->refusals);
    errand->refusals++;
    if (wait_ms < CLIENT_RETRY_MIN_MS)
        wait_ms = CLIENT_RETRY_MIN_MS;
    errand->due_ms = client->clock.now_ms + wait_ms;
}
