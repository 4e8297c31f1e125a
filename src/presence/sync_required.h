/*
 * `sync_required {"reason"}`: tells a device that it may have missed pushes, so that its client syncs its chats and reads
 * its lists again. It is sent when the device has its route again, so that nothing is missed after it.
 */
#ifndef ROLLCALL_PRESENCE_SYNC_REQUIRED_H
#define ROLLCALL_PRESENCE_SYNC_REQUIRED_H

#include "metrics/metrics.h"
#include "routing/router.h"

enum sync_reason {
    SYNC_LEASE_LOST,      /* the store had lost the device's route */
    SYNC_DELIVERY_OUTAGE, /* the gateway could not be reached for a while */
};

void sync_required_send(struct router *router, struct metrics *metrics, struct endpoint *endpoint,
                        enum sync_reason reason);

/* Tells all devices of a user that are connected here. */
void sync_required_send_to_user(struct router *router, struct metrics *metrics,
                                struct slice user_id, enum sync_reason reason);

#endif
