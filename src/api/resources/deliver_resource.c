/* POST /v1/users/{user}/deliver: sends any JSON to all devices of a user. */
#include "api/api_routes.h"

static void on_devices_counted(void *arg, enum state_status status, const struct lease *leases,
                               size_t count)
{
    (void)leases;
    struct exchange *exchange = arg;
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct buffer json = BUFFER_INIT;
    if (status != STATE_OK) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                       "routes cannot be read at present");
        return;
    }
    struct message message = {.type = MESSAGE_DELIVERY, .data = buffer_slice(&exchange->body)};
    delivery_send(sessions->delivery, &exchange->parameters[0], 1, &message, NULL);
    json_write_object(&json);
    json_write_key_int(&json, SLICE("devices"), (int64_t)count);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 202, &json);
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
        state_leases(api_context_of(exchange)->sessions->presence->store, exchange->parameters[0],
                     on_devices_counted, exchange);
}
