#include "handler/echo.h"

#include "frame/websocket_encode.h"

#include <stdlib.h>

static void payload(struct connection *connection, char *data, size_t len, bool binary)
{
    uint8_t header[WEBSOCKET_HEADER_BYTES_MAX];
    size_t header_len = websocket_header_write(
        header, binary ? WEBSOCKET_OPCODE_BINARY : WEBSOCKET_OPCODE_TEXT, len);
    struct blob *blob =
        blob_make((struct slice){(const char *)header, header_len}, (struct slice){data, len});
    if (blob)
        connection_queue(connection, blob, 0);
    else
        connection_fail(connection);
}

static int64_t tick(struct connection *connection)
{
    (void)connection;
    return INT64_MAX;
}

static void left(struct connection *connection)
{
    (void)connection;
}

static void gone(struct connection *connection)
{
    free(connection);
}

static const struct connection_owner OWNER = {
    .payload = payload,
    .tick = tick,
    .left = left,
    .gone = gone,
};

bool echo_open(struct connection_context *context, struct stream *from, struct slice greeting)
{
    struct connection *connection = malloc(sizeof(*connection));
    if (!connection)
        return false;
    if (!connection_open(connection, context, &OWNER, &DIALECT_TABLE_NATIVE, from, greeting)) {
        free(connection);
        return false;
    }
    connection_wake_at(connection, context->loop->clock.now_ms +
                                       context->config->gateway.timeouts.heartbeat_timeout_ms);
    return true;
}
