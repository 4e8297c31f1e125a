/* POST /v1/users/{user}/deliver: any JSON to all of a user's devices. */
#include "rest/router_table.h"
#include "routing/delivery.h"

static bool seen_before(const struct lease *leases, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (slice_equal(leases[i].gateway_id, leases[index].gateway_id))
            return true;
    return false;
}

/* One event for each gateway that holds a device of the user. */
static void routed(void *arg, enum state_status status, const struct lease *leases, size_t count)
{
    struct exchange *exchange = arg;
    struct handler_context *handlers = exchange->context->handlers;
    metrics_count(handlers->metrics, METRIC_ROUTING_LOOKUPS);
    if (status != STATE_OK) {
        metrics_count(handlers->metrics, METRIC_ROUTING_LOOKUP_ERRORS);
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "routes cannot be read now");
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!seen_before(leases, i))
            delivery_publish(handlers->router->bus, leases[i].gateway_id,
                             &exchange->parameters[0], 1, buffer_slice(&exchange->body));
    struct buffer json = BUFFER_INIT;
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
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is no user id");
    else if (exchange->body.len == 0 || !json_raw(&json, &raw) || !json_done(&json))
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "the body must be one JSON value");
    else
        state_leases(exchange->context->handlers->presence->store, exchange->parameters[0], routed,
                     exchange);
}
