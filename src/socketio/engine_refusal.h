/*
 * How Engine.IO requests are refused: with the codes and words of the reference server, which clients of
 * it know, {"code":1,"message":"Session ID unknown"}.
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

/* Answers 400, or 403 where it is forbidden. */
void engine_refuse(struct exchange **exchange, enum engine_refusal refusal);

/* The same with a message of ours, that needs no escapes. */
void engine_refuse_since(struct exchange **exchange, enum engine_refusal refusal,
                         const char *message);

#endif
