#include "store/call_store.h"

static const char *const CALL_STATE_NAMES[] = {
    [CALL_RINGING] = "ringing",
    [CALL_ACCEPTED] = "accepted",
    [CALL_ENDED] = "ended",
};

static const char *const CALL_REASON_NAMES[CALL_REASON_COUNT] = {
    [CALL_REASON_NONE] = "none",
    [CALL_REASON_HANGUP] = "hangup",
    [CALL_REASON_REJECTED] = "rejected",
    [CALL_REASON_CANCELLED] = "cancelled",
    [CALL_REASON_TIMEOUT] = "timeout",
    [CALL_REASON_BUSY] = "busy",
    [CALL_REASON_ANSWERED_ELSEWHERE] = "answered_elsewhere",
    [CALL_REASON_DISCONNECTED] = "disconnected",
};

const char *call_state_name(enum call_state state)
{
    return CALL_STATE_NAMES[state];
}

const char *call_reason_name(enum call_reason reason)
{
    return CALL_REASON_NAMES[reason];
}
