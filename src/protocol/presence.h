/* A user's presence, as stores, planes and dialects pass it on. */
#ifndef ROLLCALL_PROTOCOL_PRESENCE_H
#define ROLLCALL_PROTOCOL_PRESENCE_H

#include "auth/user_id.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_ID_BYTES_MAX = 128, CHAT_ID_BYTES_MAX = 128 };

enum presence_status {
    PRESENCE_UNKNOWN, /* hidden from the viewer */
    PRESENCE_OFFLINE,
    PRESENCE_AWAY,
    PRESENCE_ONLINE,
};

/* Why a presence is unknown. */
enum presence_reason {
    PRESENCE_REASON_NONE,
    PRESENCE_REASON_PRIVACY,
    PRESENCE_REASON_NOT_CONTACTS
};

#define TIME_NONE INT64_MIN

struct presence {
    struct slice user_id;
    enum presence_status status;
    enum presence_reason reason;
    bool in_call;
    bool stale;      /* the state store is unavailable: this is the last known presence */
    bool unrecorded; /* the state store has no record: the user is offline, or the record is lost */
    int64_t last_seen_ms; /* wall clock; TIME_NONE: none or hidden */
    int64_t version;      /* grows with every change of this user; 0: unknown */
};

const char *presence_status_name(enum presence_status status);
bool presence_status_parse(struct slice name, enum presence_status *out);

/* NULL for PRESENCE_REASON_NONE. */
const char *presence_reason_name(enum presence_reason reason);
bool presence_reason_parse(struct slice name, enum presence_reason *out);

/* The presence that a viewer gets of a hidden user. */
static inline struct presence presence_hidden(struct slice user_id, enum presence_reason reason)
{
    return (struct presence){.user_id = user_id, .reason = reason, .last_seen_ms = TIME_NONE};
}

#endif
