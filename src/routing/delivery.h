/*
 * What one gateway asks of another, on the topic `server:<gateway>:deliver`.
 *
 *   {"users":["a","b"], "data":…}           the server-side API: `delivery` to all their devices there
 *   {"close":"<conn_id>", "user":"a"}       an administrator closes a connection
 */
#ifndef ROLLCALL_ROUTING_DELIVERY_H
#define ROLLCALL_ROUTING_DELIVERY_H

#include "base/ulid.h"
#include "routing/router.h"

struct delivery_target {
    struct router *router;
    void (*close)(void *arg, struct slice user_id, const struct ulid *conn_id);
    void *arg;
};

/* Writes "server:<gateway>:deliver" and returns it; `out` has room for ROUTER_TOPIC_BYTES_MAX. */
struct slice delivery_topic(char *out, struct slice gateway_id);

void delivery_publish(struct bus *bus, struct slice gateway_id, const struct slice *users,
                      size_t count, struct slice data);
void delivery_publish_close(struct bus *bus, struct slice gateway_id, struct slice user_id,
                            const struct ulid *conn_id);

/* An event of this gateway's own topic. */
void delivery_received(struct delivery_target *target, struct slice payload);

#endif
