/* POST /v1/users/{user}/deliver: sends any JSON to all devices of a user. */
#include "api/api_routes.h"

#include <stdlib.h>

/* One request; the user stands in the exchange, which lives until it is answered. */
struct rest_delivery {
    struct exchange *exchange;
    struct delivery_locals locals;
};

static void on_delivered_to_devices(void *arg, enum delivery_result result, size_t devices)
{
    struct rest_delivery *delivery = arg;
    struct exchange *exchange = delivery->exchange;
    struct buffer json = BUFFER_INIT;
    free(delivery);
    if (result != DELIVERY_SENT) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                       "routes cannot be read at present, and no peer link carries the event");
        return;
    }
    json_write_object(&json);
    json_write_key_int(&json, SLICE("devices"), (int64_t)devices);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 202, &json);
}

static void deliver_to_devices(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct rest_delivery *delivery = malloc(sizeof(*delivery));
    struct message message = {.type = MESSAGE_DELIVERY, .data = buffer_slice(&exchange->body)};
    if (!delivery) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    *delivery = (struct rest_delivery){exchange, session_context_locals(sessions)};
    delivery_send_to_devices(sessions->delivery, &exchange->parameters[0], &message,
                             &delivery->locals, on_delivered_to_devices, delivery);
}

void rest_deliver(struct exchange *exchange)
{
    struct json json;
    struct slice raw;
    json_init(&json, exchange->body.data, exchange->body.len);
    if (!user_id_valid(exchange->parameters[0]))
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
    else if (exchange->body.len == 0 || !json_raw(&json, &raw) || !json_done(&json))
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "the body must be one JSON value");
    else if (!json_can_be_wrapped(raw))
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "the body is nested too deeply");
    else
        deliver_to_devices(exchange);
}
