/*
 * The peer hub: a process's links to all other processes of its fleet, by which events travel while Redis
 * does not carry them.
 *
 *   worker ──peer_hub_send(), any thread──► mailbox of the hub's worker ──► link ──► the other's hub
 *   the other's hub ──► `received`, which hands the event to the workers that want it (fleet_bus.h)
 *
 * It listens, and keeps links to the addresses it is given: those of the settings (peer.peers) for ever,
 * those learned from the registry of gateways as long as they are named there or their link stands. One's
 * own address may be among them: who answers with our name is ourselves and is not dialled again. Two
 * processes may well have two links, each having dialled; events go by one of them, and by the other when
 * that one breaks. A peer is known by the name it proved (peer_link.h), and so are its gateways: `gw` has
 * the gateway `gw`, or `gw-0`, `gw-1`, ….
 *
 * On the wire, a frame is a topic's length in two bytes, big-endian, the topic, and the payload. Who is
 * authenticated and sends anything else is ignored, frame by frame. Strangers get PEER_HUB_PENDING_MAX
 * places among them, which the oldest of them lose to newcomers (pending_peers.h), and PEER_HANDSHAKE_LIMIT_MS
 * to prove themselves.
 *
 * Everything is bounded: links, strangers, what waits in a link's queue (PEER_HUB_QUEUE_BYTES_MAX). What
 * finds no room is skipped and counted: a slow peer costs its own events and no one else's.
 *
 * It lives on one worker's loop; only peer_hub_send(), peer_hub_open_links() and peer_hub_lost_links() are for
 * any thread.
 */
#ifndef ROLLCALL_BUS_FLEET_PEER_HUB_H
#define ROLLCALL_BUS_FLEET_PEER_HUB_H

#include "bus/bus.h"
#include "metrics/metrics.h"
#include "net/listener.h"
#include "net/mailbox.h"
#include "peer/peer_link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEER_HUB_LINKS_MAX = 4096, /* dialled and accepted together */
    PEER_HUB_PENDING_MAX = 64,
    PEER_HUB_QUEUE_BYTES_MAX = 8 << 20, /* of each link */
    PEER_HUB_TOPIC_BYTES_MAX = 1024,
};

struct peer_hub_options {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    struct mailbox *mailbox;      /* of the same worker */
    struct slice name;            /* of this process; borrowed for the hub's life, and */
    struct slice secret;          /* likewise */
    struct tls_context *tls_dial; /* borrowed likewise; NULL: plain */
    struct tls_context *tls_accept;
    /* An event from another process; the slices last the call. */
    bus_on_event on_event;
    void *arg;
};

struct peer_hub;

/* NULL when memory is short. */
struct peer_hub *peer_hub_make(const struct peer_hub_options *options);

/* Only while the loop makes no turn, after the mailbox is freed. */
void peer_hub_free(struct peer_hub **hub);

/* Accepts links on HOST:PORT. False with a sentence in `error`. */
bool peer_hub_listen(struct peer_hub *hub, const char *address,
                     char error[LISTENER_ERROR_TEXT_MAX]);
uint16_t peer_hub_port(const struct peer_hub *hub);

/* Keeps a link to this address for ever. False: too many, or memory is short. */
bool peer_hub_add(struct peer_hub *hub, const char *address);

/* A process as the registry of gateways has it. */
struct peer_hub_entry {
    struct slice gateway_id; /* one of its gateways */
    struct slice address;    /* empty: it has none */
};

/* All that the registry names now. New ones are dialled, unless a link to them stands; those that are named
 * no more and have no open link are forgotten. While the registry cannot be read, do not call this. */
void peer_hub_learn(struct peer_hub *hub, const struct peer_hub_entry *entries, size_t count);

/* Sends an event to the process of the gateway that the topic names (bus.h), with BUS_TOPIC_LOST to those that
 * the registry has lost, or, with any other topic, to all processes. From any thread; `metrics` are the
 * caller's. What finds no link or no room is skipped and counted. */
void peer_hub_send(struct peer_hub *hub, struct metrics *metrics, struct slice topic,
                   struct slice payload);

/* Processes one is linked to, and how many of them the registry, as it was learned last, has lost. From any
 * thread. */
size_t peer_hub_open_links(const struct peer_hub *hub);
size_t peer_hub_lost_links(const struct peer_hub *hub);

#endif
