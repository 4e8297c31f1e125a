#include "http/exchange.h"

#include "config/address.h"
#include "http/http_connection.h"
#include "text/json.h"

#include <stdlib.h>

#define JSON_TYPE "application/json"
#define RETRY_AFTER "Retry-After: 2\r\n"

static const struct {
    unsigned status;
    const char *reason;
} REASONS[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {426, "Upgrade Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

static const char *exchange_status_reason(unsigned status)
{
    for (size_t i = 0; i < sizeof(REASONS) / sizeof(REASONS[0]); i++)
        if (REASONS[i].status == status)
            return REASONS[i].reason;
    return "Error";
}

static void exchange_free(struct exchange **exchange)
{
    if ((*exchange)->on_ended)
        (*exchange)->on_ended((*exchange)->ended_arg, (*exchange)->connection != NULL);
    struct memory_account *memory = (*exchange)->listener->memory;
    if (memory)
        memory_account_add(memory, MEMORY_BODIES, -(int64_t)(*exchange)->body.cap);
    buffer_free(&(*exchange)->head_bytes);
    buffer_free(&(*exchange)->body);
    free(*exchange);
    *exchange = NULL;
}

void exchange_hold(struct exchange *exchange, exchange_gone_hook on_client_gone, void *arg)
{
    exchange->on_client_gone = on_client_gone;
    exchange->gone_arg = arg;
    if (exchange->connection)
        stream_pause(&exchange->connection->stream, false);
}

void exchange_watch(struct exchange *exchange, exchange_ended_hook on_ended, void *arg)
{
    exchange->on_ended = on_ended;
    exchange->ended_arg = arg;
}

void exchange_stream_body(struct exchange *exchange, const struct exchange_body_sink *sink,
                          void *arg)
{
    exchange->body_sink = sink;
    exchange->body_arg = arg;
}

void exchange_pause_body(struct exchange *exchange)
{
    exchange->body_paused = true;
    if (exchange->connection)
        stream_pause(&exchange->connection->stream, true);
}

void exchange_resume_body(struct exchange *exchange)
{
    exchange->body_paused = false;
    if (!exchange->connection)
        return;
    stream_pause(&exchange->connection->stream, false);
    http_connection_stream_body(exchange->connection);
}

static bool is_loopback_origin(struct slice origin)
{
    struct slice scheme;
    struct slice rest = slice_split(origin, ':', &scheme);
    return (slice_is(scheme, "http") || slice_is(scheme, "https")) &&
           slice_starts_with(rest, SLICE("//")) && address_names_loopback(slice_after(rest, 2));
}

/* Browsers on allowed origins may read answers; those of a development server without a list of origins only on pages
 * of this machine. Tokens travel in headers, never in cookies; an origin that is
 * allowed by name may send cookies all the same, since a load balancer may use them for stickiness. */
static void exchange_write_cors_headers(struct buffer *out, const struct exchange *exchange)
{
    bool by_name = exchange->listener->config->gateway.allowed_origins.count > 0;
    struct slice origin = http1_header(&exchange->head, SLICE("Origin"));
    bool is_hidden =
        exchange->listener->config->auth.dev && !by_name && !is_loopback_origin(origin);
    if (!origin.len || is_hidden || !exchange_origin_allowed(exchange))
        return;
    buffer_append_text(out, "Access-Control-Allow-Origin: ");
    buffer_append_slice(out, origin);
    buffer_append_text(out, "\r\nVary: Origin\r\n");
    if (by_name)
        buffer_append_text(out, "Access-Control-Allow-Credentials: true\r\n");
}

static void exchange_write_status(struct exchange *exchange, unsigned status)
{
    struct http_listener *listener = exchange->listener;
    buffer_printf(&exchange->connection->out, "HTTP/1.1 %u %s\r\nDate: %s\r\n", status,
                  exchange_status_reason(status),
                  http_date_text(&listener->date, listener->loop->clock.wall_ms));
}

/* Writes the headers that every answer has, and the blank line after them. */
static void exchange_write_last_headers(struct exchange *exchange, const char *headers)
{
    struct buffer *out = &exchange->connection->out;
    exchange_write_cors_headers(out, exchange);
    buffer_append_text(out, headers);
    if (exchange->route_headers)
        buffer_append_text(out, exchange->route_headers);
    if (exchange->connection->close_after)
        buffer_append_text(out, "Connection: close\r\n");
    buffer_append_text(out, "\r\n");
}

/* ---- answers in pieces ---- */

/* HTTP/1.0 has no chunks: there the end of the connection is the end of the answer. */
void exchange_begin_answer(struct exchange *exchange, const char *content_type,
                           exchange_sent_hook on_sent, exchange_gone_hook on_client_gone, void *arg)
{
    struct http_connection *connection = exchange->connection;
    exchange->on_answer_sent = on_sent;
    exchange->on_client_gone = on_client_gone;
    exchange->gone_arg = arg;
    if (!connection)
        return;
    bool is_chunked = exchange->head.version_minor > 0;
    if (!is_chunked)
        connection->close_after = true;
    exchange_write_status(exchange, 200);
    buffer_printf(&connection->out, "Content-Type: %s\r\n%s", content_type,
                  is_chunked ? "Transfer-Encoding: chunked\r\n" : "");
    exchange_write_last_headers(exchange, "Cache-Control: no-store\r\n");
}

void exchange_write(struct exchange *exchange, struct slice bytes)
{
    struct http_connection *connection = exchange->connection;
    bool is_chunked = exchange->head.version_minor > 0;
    if (!connection)
        return;
    if (is_chunked)
        buffer_printf(&connection->out, "%zx\r\n", bytes.len);
    buffer_append_slice(&connection->out, bytes);
    if (is_chunked)
        buffer_append_text(&connection->out, "\r\n");
    http_connection_stream_answer(connection);
}

void exchange_end_answer(struct exchange **exchange, bool complete)
{
    struct http_connection *connection = (*exchange)->connection;
    bool is_chunked = (*exchange)->head.version_minor > 0;
    if (connection && is_chunked && complete)
        buffer_append_text(&connection->out, "0\r\n\r\n");
    if (connection)
        metrics_count(connection->listener->metrics, METRIC_HTTP_REQUESTS);
    exchange_free(exchange);
    if (!connection)
        return;
    connection->exchange = NULL;
    bool has_bytes = connection->out_sent < connection->out.len;
    if (!complete || connection->out.failed || !has_bytes)
        stream_close(&connection->stream);
    else
        http_connection_answered(connection);
}

/* ---- whole answers ---- */

void exchange_reply(struct exchange **exchange, unsigned status, const char *content_type,
                    const char *headers, struct slice body)
{
    struct http_connection *connection = (*exchange)->connection;
    if (!connection) {
        exchange_free(exchange);
        return;
    }
    struct buffer *out = &connection->out;
    struct http_listener *listener = connection->listener;
    exchange_write_status(*exchange, status);
    if (status != 204)
        buffer_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n", content_type, body.len);
    exchange_write_last_headers(*exchange, headers);
    if ((*exchange)->head.method != HTTP1_HEAD && status != 204)
        buffer_append_slice(out, body);
    bool failed = out->failed;
    metrics_count(listener->metrics, METRIC_HTTP_REQUESTS);
    exchange_free(exchange);
    connection->exchange = NULL;
    if (failed)
        stream_close(&connection->stream);
    else
        http_connection_answered(connection);
}

void exchange_reply_json(struct exchange **exchange, unsigned status, struct buffer *json)
{
    if (json->failed)
        exchange_error(exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        exchange_reply(exchange, status, JSON_TYPE, "Cache-Control: no-store\r\n",
                       buffer_slice(json));
    buffer_free(json);
}

void exchange_reply_empty(struct exchange **exchange)
{
    exchange_reply(exchange, 204, "", "", SLICE_NONE);
}

void exchange_error(struct exchange **exchange, unsigned status, enum error_code code,
                    const char *message)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key(&json, SLICE("error"));
    json_write_object(&json);
    json_write_key_string(&json, SLICE("code"), slice_of(error_code_name(code)));
    json_write_key_string(&json, SLICE("message"), slice_of(message));
    json_write_object_end(&json);
    json_write_object_end(&json);
    const char *headers = status == 503 || status == 429 ? RETRY_AFTER
                          : status == 401                ? "WWW-Authenticate: Bearer\r\n"
                                                         : "";
    exchange_reply(exchange, status, JSON_TYPE, headers,
                   json.failed ? SLICE_NONE : buffer_slice(&json));
    buffer_free(&json);
}

bool exchange_query(const struct exchange *exchange, struct slice name, char *out, size_t size,
                    struct slice *value)
{
    struct slice raw = http1_query_find(exchange->head.target.query, name);
    size_t len;
    if (!raw.data || raw.len > size || !http1_query_decode(raw, out, &len))
        return false;
    *value = (struct slice){out, len};
    return true;
}

struct slice exchange_token(const struct exchange *exchange)
{
    struct slice scheme = SLICE("bearer ");
    struct slice header = http1_header(&exchange->head, SLICE("Authorization"));
    if (header.len > scheme.len && strncasecmp(header.data, scheme.data, scheme.len) == 0) {
        header = slice_after(header, scheme.len);
        while (slice_starts_with(header, SLICE(" ")))
            header = slice_after(header, 1);
        return header;
    }
    struct slice query = http1_query_find(exchange->head.target.query, SLICE("access_token"));
    if (query.data)
        return query;
    struct slice prefix = SLICE("bearer.");
    struct slice item =
        http1_header_token_starting(&exchange->head, SLICE("Sec-WebSocket-Protocol"), prefix);
    return item.data ? slice_after(item, prefix.len) : SLICE_NONE;
}

bool exchange_is_local(const struct exchange *exchange)
{
    struct slice origin = http1_header(&exchange->head, SLICE("Origin"));
    return address_names_loopback(http1_header(&exchange->head, SLICE("Host"))) &&
           (!origin.data || is_loopback_origin(origin));
}

bool exchange_origin_allowed(const struct exchange *exchange)
{
    const struct config_list *allowed = &exchange->listener->config->gateway.allowed_origins;
    struct slice origin = http1_header(&exchange->head, SLICE("Origin"));
    if (!origin.data || allowed->count == 0)
        return true;
    for (size_t i = 0; i < allowed->count; i++)
        if (slice_is(origin, allowed->items[i]))
            return true;
    return false;
}
