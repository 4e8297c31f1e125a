#include "api/contact_events.h"

#include <stdlib.h>
#include <string.h>

static void send(struct session_context *handlers, struct slice to, enum message_type type,
                 struct contact_fields fields)
{
    struct message message = {.type = type, .contact = fields};
    delivery_send(handlers->delivery, &to, 1, &message, NULL);
}

static void send_to_both(struct session_context *handlers, enum message_type type, struct slice a,
                         struct slice b)
{
    send(handlers, a, type, (struct contact_fields){.user_id = b});
    send(handlers, b, type, (struct contact_fields){.user_id = a});
}

void contact_events_requested(struct session_context *handlers, struct slice request_id,
                              struct slice from, struct slice to)
{
    send(handlers, to, MESSAGE_CONTACT_REQUEST, (struct contact_fields){request_id, from});
}

/* An answer that waits until everybody who must be told has been. */
struct settling {
    struct exchange *exchange;
    unsigned status;
    struct buffer json; /* of a 2xx other than 204 */
    bool contact_ended;
    struct slice peer;
    char peer_bytes[];
};

static void settled(void *arg)
{
    struct settling *settling = arg;
    struct exchange *exchange = settling->exchange;
    if (settling->contact_ended)
        send_to_both(rest_of(exchange)->handlers, MESSAGE_CONTACT_REMOVED, exchange_user(exchange),
                     settling->peer);
    if (settling->status == 204)
        exchange_reply_empty(&exchange);
    else
        exchange_reply_json(&exchange, settling->status, &settling->json);
    free(settling);
}

/* NULL after a 503: the change stands, and is seen by who looks. */
static struct settling *make_settling(struct exchange *exchange, struct slice peer, unsigned status)
{
    struct settling *settling = malloc(sizeof(*settling) + peer.len);
    if (!settling) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return NULL;
    }
    *settling = (struct settling){.exchange = exchange, .status = status};
    memcpy(settling->peer_bytes, peer.data, peer.len);
    settling->peer = (struct slice){settling->peer_bytes, peer.len};
    return settling;
}

void contact_events_made(struct exchange *exchange, struct slice user, struct slice peer,
                         bool is_new, unsigned status, struct buffer *json)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    struct settling *settling = make_settling(exchange, peer, status);
    if (!settling) {
        buffer_free(json);
        return;
    }
    settling->json = *json;
    *json = BUFFER_INIT;
    if (is_new)
        send_to_both(handlers, MESSAGE_CONTACT_ACCEPTED, user, settling->peer);
    visibility_change_of_relation(handlers->presence,
                                  is_new ? VISIBILITY_CONTACT_MADE : VISIBILITY_REPEATED, user,
                                  settling->peer, false, settled, settling);
}

void contact_events_changed(struct exchange *exchange, enum visibility_cause cause,
                            struct slice peer, bool contact_ended)
{
    struct settling *settling = make_settling(exchange, peer, 204);
    if (!settling)
        return;
    settling->contact_ended = contact_ended;
    if (contact_ended)
        call_plane_part(rest_of(exchange)->handlers->calls, exchange_user(exchange),
                        settling->peer);
    visibility_change_of_relation(rest_of(exchange)->handlers->presence, cause,
                                  exchange_user(exchange), settling->peer, contact_ended, settled,
                                  settling);
}
