#include "protocol/presence.h"

#include <stddef.h>

static const char *const STATUS_NAMES[] = {
    [PRESENCE_UNKNOWN] = "unknown",
    [PRESENCE_OFFLINE] = "offline",
    [PRESENCE_AWAY] = "away",
    [PRESENCE_ONLINE] = "online",
};

enum { STATUS_COUNT = sizeof(STATUS_NAMES) / sizeof(STATUS_NAMES[0]) };

const char *presence_status_name(enum presence_status status)
{
    return STATUS_NAMES[status];
}

bool presence_status_parse(struct slice name, enum presence_status *out)
{
    for (int i = 0; i < STATUS_COUNT; i++)
        if (slice_is(name, STATUS_NAMES[i])) {
            *out = (enum presence_status)i;
            return true;
        }
    return false;
}

const char *presence_reason_name(enum presence_reason reason)
{
    switch (reason) {
    case PRESENCE_REASON_PRIVACY:
        return "privacy";
    case PRESENCE_REASON_NOT_CONTACTS:
        return "not_contacts";
    case PRESENCE_REASON_NONE:
        break;
    }
    return NULL;
}

bool presence_reason_parse(struct slice name, enum presence_reason *out)
{
    for (int i = PRESENCE_REASON_PRIVACY; i <= PRESENCE_REASON_NOT_CONTACTS; i++)
        if (slice_is(name, presence_reason_name((enum presence_reason)i))) {
            *out = (enum presence_reason)i;
            return true;
        }
    return false;
}
