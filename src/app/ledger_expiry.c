#include "app/ledger_expiry.h"

#include "base/container.h"

enum { EXPIRY_CHECKS_PER_LIMIT = 20, EXPIRY_CHECK_MIN_MS = 5, EXPIRY_CHECK_MAX_MS = 250 };

static void expire_ledger_requests(struct wheel_timer *timer)
{
    struct ledger_expiry *expiry = CONTAINER_OF(timer, struct ledger_expiry, timer);
    int64_t period_ms = expiry->client->time_limit_ms / EXPIRY_CHECKS_PER_LIMIT;
    if (period_ms < EXPIRY_CHECK_MIN_MS)
        period_ms = EXPIRY_CHECK_MIN_MS;
    if (period_ms > EXPIRY_CHECK_MAX_MS)
        period_ms = EXPIRY_CHECK_MAX_MS;
    ledger_client_expire(expiry->client);
    loop_set_timer(expiry->loop, timer, expiry->loop->clock.now_ms + period_ms);
}

void ledger_expiry_start(struct ledger_expiry *expiry, struct loop *loop,
                         struct ledger_client *client)
{
    *expiry = (struct ledger_expiry){
        .loop = loop, .client = client, .timer.fire = expire_ledger_requests};
    expire_ledger_requests(&expiry->timer);
}
