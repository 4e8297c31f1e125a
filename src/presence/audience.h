/*
 * The audience of a user: settings, the contacts that are online, blocks and chats, from the graph cache
 * or, where it misses, from the ledger. And who of them hears of a change of presence:
 *
 *   subscribers      by the topic `presence:<user>`, at once (presence_plane.c)
 *   contacts online  by a push to their gateways (push.h), unless the user shows nobody
 *   open chats       by the topic `chat:<chat>:presence`, if the user shows everybody: contacts have it
 *                    already, and all others but those in `except`, the blocked, may have it
 *
 * Questions about one user are answered in the order they were asked; while a graph is loaded, those
 * who ask for it wait together. An aged graph serves while it is read anew. Where the cache misses and the
 * ledger does not answer, a change reaches no contact: presence fails softly, and who looks sees it.
 *
 * Part of the presence plane, on its thread. A plane without a graph store has no audience at all.
 */
#ifndef ROLLCALL_PRESENCE_AUDIENCE_H
#define ROLLCALL_PRESENCE_AUDIENCE_H

#include "base/table.h"
#include "ledger/ledger.h"
#include "protocol/message.h"
#include "store/graph_store.h"

#include <stdbool.h>

struct presence_plane;

enum {
    AUDIENCE_LOADS_MAX = 8192, /* users whose graphs are being read; more are skipped */
    AUDIENCE_WAITING_MAX = 64, /* questions that wait for one of them; then the oldest is skipped */
    AUDIENCE_ATTEMPTS_MAX = 3, /* a graph that changes each time it is read is given up */
    AUDIENCE_CHATS_MAX = 1000, /* of one user; presence reaches no more of them */
    AUDIENCE_ROOMS_MAX = 64,   /* of one user, whose names go along with each push to contacts */
};

/* What the plane keeps for it. */
struct audience {
    struct graph_store *graphs; /* NULL: none */
    struct table loads;
    size_t asking; /* questions to the graph store under way */
};

bool audience_init(struct audience *audience, struct graph_store *graphs, uint64_t hash_seed);
void audience_free(struct audience *audience);

/* Whether nobody waits for the ledger or the graph store. */
bool audience_idle(const struct audience *audience);

/* Finds out a user's graph with the contacts that are online. `done` runs once, also before this
 * returns; NULL: it cannot be known now. */
void audience_ask(struct presence_plane *plane, struct slice user_id,
                  void (*done)(void *arg, const struct social_graph *graph), void *arg);

/* A user's presence has changed: notes whether they are online, and tells contacts and chats as far as
 * privacy allows. */
void audience_tell(struct presence_plane *plane, const struct presence_change *change);

/* Publishes a change that everybody in these chats may know but for those in the two lists. */
void audience_tell_chats(struct presence_plane *plane, const struct id_list *chats,
                         const struct presence_change *change, const struct id_list *except,
                         const struct id_list *except_too);

/* A user's contacts, blocks, chats or settings are different now: what is cached is void. */
void audience_drop(struct presence_plane *plane, struct slice user_id);

#endif
