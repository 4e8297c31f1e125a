#include "presence/sync_required.h"

static struct message make_sync_required(enum sync_reason reason)
{
    static const struct slice fields[] = {
        [SYNC_LEASE_LOST] = {"{\"reason\":\"lease_lost\"}", 23},
        [SYNC_DELIVERY_OUTAGE] = {"{\"reason\":\"delivery_outage\"}", 28},
    };
    return (struct message){.type = MESSAGE_RELAY,
                            .relay = {.name = RELAY_SYNC_REQUIRED, .fields = fields[reason]}};
}

void sync_required_send(struct router *router, struct metrics *metrics, struct endpoint *endpoint,
                        enum sync_reason reason)
{
    struct message message = make_sync_required(reason);
    struct broadcast broadcast = {.message = &message};
    router->deliver(endpoint, &broadcast, 0);
    broadcast_end(&broadcast);
    metrics_count(metrics, METRIC_SYNCS_REQUIRED);
}

void sync_required_send_to_user(struct router *router, struct metrics *metrics,
                                struct slice user_id, enum sync_reason reason)
{
    struct message message = make_sync_required(reason);
    size_t told = router_send_to_user(router, user_id, &message, NULL);
    metrics_add(metrics, METRIC_SYNCS_REQUIRED, (int64_t)told);
}
