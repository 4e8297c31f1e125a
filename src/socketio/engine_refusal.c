#include "socketio/engine_refusal.h"

#include <stdio.h>

enum { REFUSAL_BYTES_MAX = 128 };

static const char *const MESSAGES[ENGINE_REFUSAL_COUNT] = {
    [ENGINE_UNKNOWN_TRANSPORT] = "Transport unknown",
    [ENGINE_UNKNOWN_SID] = "Session ID unknown",
    [ENGINE_BAD_HANDSHAKE_METHOD] = "Bad handshake method",
    [ENGINE_BAD_REQUEST] = "Bad request",
    [ENGINE_FORBIDDEN] = "Forbidden",
    [ENGINE_UNSUPPORTED_VERSION] = "Unsupported protocol version",
};

void engine_refuse(struct exchange **exchange, enum engine_refusal refusal)
{
    engine_refuse_with_text(exchange, refusal, MESSAGES[refusal]);
}

void engine_refuse_with_text(struct exchange **exchange, enum engine_refusal refusal,
                             const char *text)
{
    char body[REFUSAL_BYTES_MAX];
    int len = snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"%s\"}", (int)refusal, text);
    exchange_reply(exchange, refusal == ENGINE_FORBIDDEN ? 403 : 400, "application/json",
                   "Cache-Control: no-store\r\n", (struct slice){body, (size_t)len});
}
