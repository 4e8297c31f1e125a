#include "socketio/polling_post.h"

#include "socketio/codec/engineio.h"
#include "socketio/engine_refusal.h"

static void on_post_ended(void *arg, bool answered)
{
    struct polling *polling = arg;
    polling->post = NULL;
    if (!answered)
        polling_end(polling);
}

bool polling_post_begin(struct polling *polling, struct exchange *exchange)
{
    if (polling->post) {
        polling_end(polling);
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
        return false;
    }
    polling->post = exchange;
    exchange_watch(exchange, on_post_ended, polling);
    return true;
}

static void answer_post(struct exchange **exchange)
{
    exchange_reply(exchange, 200, "text/html", POLLING_NO_STORE, SLICE("ok"));
}

void polling_post_resume(struct polling *polling)
{
    struct exchange *held = polling->post_held ? polling->post : NULL;
    polling->post_held = false;
    if (held)
        answer_post(&held);
}

void polling_post_forget(struct polling *polling)
{
    struct exchange *held = polling->post_held ? polling->post : NULL;
    if (polling->post)
        exchange_watch(polling->post, NULL, NULL);
    polling->post = NULL;
    polling->post_held = false;
    if (held)
        answer_post(&held);
}

/* Each packet is handled like a frame; a malformed one ends the Engine.IO session. A client that closes it is sent
 * nothing more, only its waiting poll is answered. */
static void take_post_payload(struct polling *polling, struct buffer *body)
{
    struct engineio_payload payload;
    struct engineio_packet packet;
    enum engineio_next next;
    struct connection *connection = socketio_connection(polling->session);
    engineio_payload_start(&payload, body->data, body->len);
    while (!polling->closing && (next = engineio_payload_next(&payload, &packet)) != ENGINEIO_END) {
        if (next == ENGINEIO_BAD) {
            polling_end(polling);
            return;
        }
        size_t type_bytes = packet.binary ? 0 : 1; /* it precedes the data, as in a frame */
        connection_receive(connection, packet.data - type_bytes, packet.len + type_bytes,
                           packet.binary);
        if (polling->session->client_leaves) {
            polling_release(polling);
            polling_end(polling);
        }
    }
}

void polling_post_serve(struct polling *polling, struct exchange *exchange)
{
    struct slice type = http1_header(&exchange->head, SLICE("Content-Type"));
    if (slice_is(type, "application/octet-stream")) { /* of an older protocol */
        engine_refuse(&exchange, ENGINE_BAD_REQUEST);
        polling_end(polling);
        return;
    }
    take_post_payload(polling, &exchange->body);
    polling->post_held = polling->post && socketio_connection(polling->session)->throttled;
    if (!polling->post_held)
        answer_post(&exchange);
}
