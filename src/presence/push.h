/*
 * Pushes: changes of a user's presence to people who hold no subscription, because they are contacts, or
 * because what they may see has just become different.
 *
 *   push_send() → state store: which gateways → one publish per gateway, carrying all receivers there,
 *   on `server:<gateway>:deliver` → push_received() → each receiver's own sockets
 *
 * On the wire it is told from other deliveries by its first member:
 *
 *   {"presence":{…as presence_event.h…}, "chats":["c"], "users":["a","b"]}      a contact's change
 *   {"presence":{…}, "view":0, "contacts":true, "chats":["c"], "users":["a"]}   sight lost or gained
 *
 * While routes cannot be looked up, or the store may have forgotten them, sight lost or gained is told to all
 * gateways (BUS_TOPIC_ALL), and always to those that it has lost (BUS_TOPIC_LOST).
 *
 * The sender has applied privacy: a push says no more than all its receivers may see. It takes sight from a
 * subscription at once; where it would give it, the ledger is asked (review.h). One change reaches
 * an endpoint once, however many roads lead there: a subscription that shows the user comes first, and
 * between pushes and chats the endpoint remembers (routing/recent.h).
 */
#ifndef ROLLCALL_PRESENCE_PUSH_H
#define ROLLCALL_PRESENCE_PUSH_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"
#include "store/graph_store.h"

struct push {
    struct presence_change change;
    bool exposes; /* the receivers' view of this user is `view` from now on; else only a change */
    enum privacy_view view;
    /* Of one that exposes, who without a subscription is told; else, to whom it is news of a room. */
    bool contacts;           /* the receivers, as they are, or were until now, contacts */
    struct graph_list chats; /* those who have one of these open */
};

/* Sends to all devices of the users. Nobody waits for it and nothing is retried. */
void push_send(struct presence_plane *plane, const struct graph_list *users,
               const struct push *push);

/* Whether a delivery is a push. */
bool push_is(struct slice payload);
void push_received(struct presence_plane *plane, struct slice payload);

/* Whether a change that came as a contact's or through a chat is news to this endpoint; from now on it
 * is none. Not for the one whose presence it is. */
bool push_is_news(const struct router *router, struct endpoint *endpoint,
                  const struct presence_change *change);

#endif
