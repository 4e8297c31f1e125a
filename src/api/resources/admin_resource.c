/* /admin/v1: gateways, connections, drain. */
#include "api/admin_json.h"
#include "api/api_routes.h"
#include "base/ulid.h"

static void reply_store_unavailable(struct exchange **exchange)
{
    exchange_error(exchange, 503, ERROR_SERVICE_UNAVAILABLE, "the state store does not answer");
}

static void on_admin_gateways_listed(void *arg, enum state_status status,
                                     const struct gateway_info *gateways, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (status != STATE_OK) {
        reply_store_unavailable(&exchange);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("gateways"));
    json_write_array(&json);
    const struct session_context *own = api_context_of(exchange)->sessions;
    for (size_t i = 0; i < count; i++) {
        bool is_own = slice_equal(gateways[i].gateway_id, own->gateway_id);
        size_t connections = is_own ? own->session_count : gateways[i].connections;
        json_write_object(&json);
        json_write_key_string(&json, SLICE("server_id"), gateways[i].gateway_id);
        json_write_key_int(&json, SLICE("connections"), (int64_t)connections);
        admin_write_time(&json, SLICE("started_at"), gateways[i].started_at_ms);
        json_write_key_bool(&json, SLICE("draining"), gateways[i].draining);
        json_write_object_end(&json);
    }
    json_write_array_end(&json);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_admin_gateways(struct exchange *exchange)
{
    state_gateways(api_context_of(exchange)->sessions->presence->store, on_admin_gateways_listed,
                   exchange);
}

static void on_admin_connections_listed(void *arg, enum state_status status,
                                        const struct lease *leases, size_t count)
{
    struct exchange *exchange = arg;
    struct buffer json = BUFFER_INIT;
    if (status != STATE_OK) {
        reply_store_unavailable(&exchange);
        return;
    }
    json_write_object(&json);
    json_write_key(&json, SLICE("connections"));
    admin_write_leases(&json, leases, count);
    json_write_key_bool(&json, SLICE("truncated"), count == STATE_LEASES_MAX);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_admin_connections(struct exchange *exchange)
{
    char text[EXCHANGE_PARAMETER_BYTES_MAX];
    struct slice user;
    if (exchange_query(exchange, SLICE("user"), text, sizeof(text), &user) && user_id_valid(user))
        state_leases(api_context_of(exchange)->sessions->presence->store, user,
                     on_admin_connections_listed, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "user must be a user id");
}

static void on_admin_connection_found(void *arg, enum state_status status,
                                      const struct lease *lease)
{
    struct exchange *exchange = arg;
    if (status != STATE_OK) {
        reply_store_unavailable(&exchange);
    } else if (!lease) {
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "no such connection");
    } else {
        delivery_close(api_context_of(exchange)->sessions->delivery, lease->gateway_id,
                       lease->user_id, &lease->conn_id, CLOSING_ADMIN);
        exchange_reply_empty(&exchange);
    }
}

void rest_admin_connection_delete(struct exchange *exchange)
{
    struct ulid conn_id;
    if (ulid_parse(exchange->parameters[0], &conn_id))
        state_find(api_context_of(exchange)->sessions->presence->store, &conn_id,
                   on_admin_connection_found, exchange);
    else
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "no such connection");
}

void rest_admin_drain(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    exchange_reply(&exchange, 202, "application/json", "", SLICE("{\"draining\":true}"));
    context->drain(context->drain_arg);
}
