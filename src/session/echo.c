#include "session/echo.h"

#include "base/container.h"
#include "protocol/websocket/websocket_encode.h"

#include <stdlib.h>

struct echo {
    struct connection connection;
    struct list item;
};

static void on_echo_payload(struct connection *connection, char *data, size_t len, bool binary)
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

static int64_t on_echo_tick(struct connection *connection)
{
    (void)connection;
    return INT64_MAX;
}

static void on_echo_left(struct connection *connection)
{
    (void)connection;
}

static void on_echo_gone(struct connection *connection)
{
    struct echo *echo = CONTAINER_OF(connection, struct echo, connection);
    list_remove(&echo->item);
    free(echo);
}

static const struct connection_owner ECHO_OWNER = {
    .on_payload = on_echo_payload,
    .on_tick = on_echo_tick,
    .on_left = on_echo_left,
    .on_gone = on_echo_gone,
};

bool echo_open(struct connection_context *context, struct list *all, struct stream *from,
               struct slice greeting)
{
    struct echo *echo = malloc(sizeof(*echo));
    if (!echo)
        return false;
    if (!connection_open(&echo->connection, context, &ECHO_OWNER, &DIALECT_TABLE_NATIVE, from,
                         greeting)) {
        free(echo);
        return false;
    }
    list_append(all, &echo->item);
    connection_wake_at(&echo->connection,
                       context->loop->clock.now_ms +
                           context->config->gateway.timeouts.heartbeat_timeout_ms);
    return true;
}

void echo_end_all(struct list *all)
{
    for (struct list *at = all->next; at != all; at = at->next)
        connection_end(&CONTAINER_OF(at, struct echo, item)->connection, CLOSING_DRAINING, -1);
}
