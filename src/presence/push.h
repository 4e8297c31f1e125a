/*
 * Pushes: changes of a user's presence for users who hold no subscription, because they are contacts, or
 * because their visibility has just changed.
 *
 *   push_send() → state store: which gateways → one publish per gateway, carrying all receivers there,
 *   on `server:<gateway>:deliver` → delivery_received() → push_received() → each receiver's own sockets
 *
 * A push is a delivery of the kind "presence" (routing/delivery_payload.h):
 *
 *   {"kind":"presence", "presence":{…as presence_event.h…}, "chats":["c"], "users":["a","b"]}   a contact's change
 *   {"kind":"presence", "presence":{…}, "chats":["c"], "view":0, "contacts":true, "users":["a"]}   a visibility change
 *
 * A visibility change goes to all gateways (BUS_TOPIC_ALL) while routes cannot be looked up, or while the
 * store may have lost them, and always to the gateways that the store has lost (BUS_TOPIC_LOST).
 *
 * The sender has applied privacy: a push shows no more than all its receivers may see. A push narrows the
 * view of a subscription at once; before a view widens, the ledger is read (visibility/visibility_review.h).
 * One change reaches an endpoint once, from any number of change sources: a subscription that shows the user
 * comes first, and between pushes and chats the endpoint records what it was told (routing/recent.h).
 */
#ifndef ROLLCALL_PRESENCE_PUSH_H
#define ROLLCALL_PRESENCE_PUSH_H

#include "presence/presence_plane.h"
#include "presence/visibility/privacy.h"
#include "store/graph_store.h"
#include "text/json.h"

struct push {
    struct presence_change change;
    bool changes_view;      /* false: the presence changed, and views stay as they are */
    enum privacy_view view; /* the receivers' view of this user from now on */
    /* Which receivers without a subscription are told when the view changes. When it does not, `chats` selects
     * those who get an announcement as members of a shared chat. */
    bool contacts;        /* all receivers, because they are, or were until now, contacts */
    struct id_list chats; /* receivers who have one of these chats open */
};

/* Sends to all devices of the users. Best effort: nothing is retried. */
void push_send(struct presence_plane *plane, const struct id_list *users, const struct push *push);

/* Receives a push (a delivery_presence_hook); `arg` is the presence plane. Returns false when it is invalid. */
bool push_received(void *arg, struct json *json);

/* Returns whether a change that came from a contact or through a chat is new to this endpoint, and records it
 * as told. Not for endpoints of the user whose presence it is. */
bool push_is_new(const struct router *router, struct endpoint *endpoint,
                 const struct presence_change *change);

#endif
