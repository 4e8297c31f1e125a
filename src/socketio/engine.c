#include "socketio/engine.h"

#include "text/base64url.h"

enum {
    SID_PROCESS_BYTES = 4,
    SID_PLACE_BYTES = SID_PROCESS_BYTES + 2,
    PING_KEY = 6, /* even, so it differs from every router_key() */
};

bool engine_make_sid(char out[ENGINE_SID_LEN], struct random *random,
                     const struct engine_place *place)
{
    unsigned char bytes[SID_PLACE_BYTES + ENGINE_SID_RANDOM_BYTES];
    struct buffer text = BUFFER_INIT;
    for (unsigned i = 0; i < SID_PROCESS_BYTES; i++)
        bytes[i] = (unsigned char)(place->process >> (24 - 8 * i));
    bytes[SID_PROCESS_BYTES] = (unsigned char)(place->worker >> 8);
    bytes[SID_PROCESS_BYTES + 1] = (unsigned char)place->worker;
    random_bytes(random, bytes + SID_PLACE_BYTES, ENGINE_SID_RANDOM_BYTES);
    base64url_encode(&text, bytes, sizeof(bytes));
    bool made = !text.failed;
    if (made)
        memcpy(out, text.data, ENGINE_SID_LEN);
    buffer_free(&text);
    return made;
}

bool engine_sid_place(struct slice sid, struct engine_place *out)
{
    unsigned char bytes[ENGINE_SID_LEN];
    size_t len;
    if (sid.len != ENGINE_SID_LEN || !base64url_decode(sid, bytes, &len))
        return false;
    *out = (struct engine_place){0};
    for (unsigned i = 0; i < SID_PROCESS_BYTES; i++)
        out->process = out->process << 8 | bytes[i];
    out->worker = (uint16_t)(bytes[SID_PROCESS_BYTES] << 8 | bytes[SID_PROCESS_BYTES + 1]);
    return true;
}

static const struct config_socketio *engine_config_of(const struct connection *connection)
{
    return &connection->context->config->socketio;
}

static int64_t engine_now_ms(const struct connection *connection)
{
    return connection->context->loop->clock.now_ms;
}

void engine_open(struct engine *engine, struct connection *connection, bool upgrades)
{
    const struct config_socketio *config = engine_config_of(connection);
    struct buffer text = BUFFER_INIT;
    engineio_open_write(&text,
                        &(struct engineio_open){.sid = engine_sid(engine),
                                                .upgrades = upgrades,
                                                .ping_interval_ms = config->ping_interval_ms,
                                                .ping_timeout_ms = config->ping_timeout_ms,
                                                .payload_bytes_max = config->max_payload_bytes});
    if (text.failed ||
        !connection_send_frame(connection, WEBSOCKET_OPCODE_TEXT, buffer_slice(&text), 0))
        connection_fail(connection);
    buffer_free(&text);
    engine->awaits_pong = false;
    engine->ping_at_ms = engine_now_ms(connection) + config->ping_interval_ms;
    connection_wake_at(connection, engine->ping_at_ms);
}

enum engine_verdict engine_receive(struct engine *engine, struct connection *connection, char *data,
                                   size_t len, bool binary, struct engineio_packet *packet)
{
    if (!engineio_parse(data, len, binary, packet))
        return ENGINE_BROKEN;
    switch (packet->type) {
    case ENGINEIO_MESSAGE:
        return ENGINE_MESSAGE;
    case ENGINEIO_PONG:
        engine->awaits_pong = false;
        engine->ping_at_ms =
            engine_now_ms(connection) + engine_config_of(connection)->ping_interval_ms;
        return ENGINE_HANDLED;
    case ENGINEIO_CLOSE:
        return ENGINE_LEAVES;
    case ENGINEIO_PING: /* in protocol 4 only the server pings */
        return ENGINE_BROKEN;
    default:
        return ENGINE_HANDLED;
    }
}

bool engine_ping(struct engine *engine, struct connection *connection)
{
    if (engine->awaits_pong)
        return true;
    engine->awaits_pong = true;
    engine->ping_at_ms = engine_now_ms(connection) + engine_config_of(connection)->ping_timeout_ms;
    connection_wake_at(connection, engine->ping_at_ms);
    return connection_send_frame(connection, WEBSOCKET_OPCODE_TEXT, SLICE("2"), PING_KEY);
}

int64_t engine_tick(struct engine *engine, struct connection *connection)
{
    if (engine_now_ms(connection) < engine->ping_at_ms)
        return engine->ping_at_ms;
    if (engine->awaits_pong) {
        connection_end(connection, CLOSING_HEARTBEAT_TIMEOUT, -1);
        return INT64_MAX;
    }
    if (!engine_ping(engine, connection))
        connection_fail(connection);
    return engine->ping_at_ms;
}
