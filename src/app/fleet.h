/*
 * What a process needs to be part of a fleet: where Redis is, and how to find and authenticate its peers.
 *
 * Made once, before the workers, and shared by them. The peer hub runs on the first worker's loop, which
 * makes it and stores it here before any loop turns; NULL means that peer links are off.
 */
#ifndef ROLLCALL_APP_FLEET_H
#define ROLLCALL_APP_FLEET_H

#include "app/process_id.h"
#include "bus/fleet/peer_hub.h"
#include "config/config.h"
#include "net/tls.h"
#include "redis/protocol/redis_url.h"
#include "redis/redis_report.h"

#include <stdbool.h>

enum { FLEET_ERROR_TEXT_MAX = 512, FLEET_ADDRESS_MAX = 272 };

struct fleet {
    struct redis_url redis;        /* contains the password; unused with aggregators */
    struct tls_context *redis_tls; /* NULL: plain */
    struct redis_report report;    /* what the log said about Redis */
    atomic_bool is_waiting;        /* a gateway started although Redis did not answer */
    atomic_bool
        is_alone; /* the registry of gateways, as read last, names only gateways of this process */
    struct slice process;    /* its name as a peer; borrowed */
    struct slice process_id; /* process_id.h; points into `process_id_text` */
    char process_id_text[PROCESS_ID_BYTES_MAX];
    struct slice peer_secret;        /* empty: no peer links */
    struct tls_context *peer_accept; /* both NULL: plain */
    struct tls_context *peer_dial;
    char peer_address[FLEET_ADDRESS_MAX]; /* of this process, for peers; empty: none */
    struct peer_hub *hub;
};

/* `process` is its name as a peer: gateway.node_id for gateways, a name with a colon for others (peer_hub.h). On failure
 * returns NULL and explains in `error`, which holds no secret. */
struct fleet *fleet_make(const struct config *config, struct slice process,
                         char error[FLEET_ERROR_TEXT_MAX]);

/* Call it after the last gateway is freed. */
void fleet_free(struct fleet **fleet);

/* The hub listens on this port: stores the address under which peers reach it. */
void fleet_note_port(struct fleet *fleet, const struct config *config, uint16_t port);

#endif
