/*
 * The peer hub: a process's links to all other processes of its fleet. They carry events while Redis does not.
 *
 *   worker ──peer_hub_send(), any thread──► mailbox of the hub's worker ──► link ──► the other hub
 *   the other hub ──► `on_event`, which hands the event to the workers that subscribe to it (fleet_bus.h)
 *
 * The hub listens, and keeps links to two kinds of addresses: those of the settings (peer.peers) always,
 * those learned from the registry of gateways as long as the registry names them or their link is open. Its
 * own address may be among them: a peer that answers with the hub's own name is not dialled again. Two
 * processes may have two links, when each has dialled; events use one of them, and the other when that one
 * breaks. A peer is identified by the name it proved (peer_link.h), which also names its gateways: `gw` has
 * the gateway `gw`, or `gw-0`, `gw-1`, …. A process without gateways (`rollcall fanout`) has a name with a colon, which
 * no gateway id contains: it sends events to the others, gets none, and the registry cannot lose it.
 *
 * On the wire, a frame is the length of a topic in two bytes, big-endian, the topic, and the payload. Other
 * frames of an authenticated peer are ignored one by one. Pending peers have PEER_HUB_PENDING_MAX places,
 * which the oldest of them lose to newcomers (pending_peers.h), and PEER_HANDSHAKE_LIMIT_MS to authenticate.
 *
 * Everything is bounded: links, pending peers, the queue of a link (PEER_HUB_QUEUE_BYTES_MAX). An event that
 * finds the queue full is skipped and counted: a slow peer loses its own events and nobody else's.
 *
 * The hub lives on one worker's loop; only peer_hub_send() and the functions that count links may be called from any
 * thread.
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
    PEER_HUB_QUEUE_BYTES_MAX = 8 << 20, /* per link */
    PEER_HUB_TOPIC_BYTES_MAX = 1024,
};

struct peer_hub_options {
    struct loop *loop;
    struct stream_set *streams;
    struct random *random;
    struct metrics *metrics;
    struct mailbox *mailbox;      /* of the same worker */
    struct slice name;            /* of this process; outlives the hub */
    struct slice secret;          /* outlives the hub */
    struct tls_context *tls_dial; /* outlives the hub; NULL: plain */
    struct tls_context *tls_accept;
    /* Receives events from other processes. */
    bus_on_event on_event;
    void *arg;
};

struct peer_hub;

/* Returns NULL when out of memory. */
struct peer_hub *peer_hub_make(const struct peer_hub_options *options);

/* Frees the hub, only while the loop makes no turn, and after the mailbox was freed. */
void peer_hub_free(struct peer_hub **hub);

/* Accepts links on HOST:PORT. Returns false with a sentence in `error`. */
bool peer_hub_listen(struct peer_hub *hub, const char *address,
                     char error[LISTENER_ERROR_TEXT_MAX]);
uint16_t peer_hub_port(const struct peer_hub *hub);

/* Keeps a link to this address always. Returns false when there are too many, or when out of memory. */
bool peer_hub_add(struct peer_hub *hub, const char *address);

/* A process as the registry of gateways lists it. */
struct peer_hub_entry {
    struct slice gateway_id; /* one of its gateways */
    struct slice address;    /* may be empty */
};

/* Returns whether this gateway id belongs to the process with that name. */
bool peer_hub_is_gateway_of(struct slice gateway_id, struct slice process);

/* Takes all entries of the registry. Dials new ones, unless a link to them is open; forgets those that are not
 * named any more and have no open link. Must not be used while the registry cannot be read. */
void peer_hub_learn(struct peer_hub *hub, const struct peer_hub_entry *entries, size_t count);

/* Sends an event to the process of the gateway that the topic names (bus.h); with BUS_TOPIC_LOST to the
 * processes that the registry has lost; with any other topic to all processes. From any thread; `metrics`
 * are the caller's. Without a link, or with a full queue, the event is skipped and counted. */
void peer_hub_send(struct peer_hub *hub, struct metrics *metrics, struct slice topic,
                   struct slice payload);

/* Return how many processes the hub has links to, how many of them have gateways, and how many the registry, as learned
 * last, has lost. From any thread. */
size_t peer_hub_open_links(const struct peer_hub *hub);
size_t peer_hub_gateway_links(const struct peer_hub *hub);
size_t peer_hub_lost_links(const struct peer_hub *hub);

#endif
