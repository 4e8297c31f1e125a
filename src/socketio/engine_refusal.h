/*
 * Refusals of Engine.IO requests, with the codes and texts of the reference server, which clients expect:
 * {"code":1,"message":"Session ID unknown"}.
 */
#ifndef ROLLCALL_SOCKETIO_ENGINE_REFUSAL_H
#define ROLLCALL_SOCKETIO_ENGINE_REFUSAL_H

#include "http/exchange.h"

enum engine_refusal {
    ENGINE_UNKNOWN_TRANSPORT,
    ENGINE_UNKNOWN_SID,
    ENGINE_BAD_HANDSHAKE_METHOD,
    ENGINE_BAD_REQUEST,
    ENGINE_FORBIDDEN,
    ENGINE_UNSUPPORTED_VERSION,
    ENGINE_REFUSAL_COUNT
};

/* Answers 403 for FORBIDDEN, else 400. */
void engine_refuse(struct exchange **exchange, enum engine_refusal refusal);

/* The same with a text of its own, which must need no JSON escapes. */
void engine_refuse_with_text(struct exchange **exchange, enum engine_refusal refusal,
                             const char *text);

#endif
