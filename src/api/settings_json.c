#include "api/settings_json.h"

#include "text/json.h"

static const char *const VISIBILITY_NAMES[] = {
    [LEDGER_VISIBLE_CONTACTS_ONLY] = "contacts_only",
    [LEDGER_VISIBLE_EVERYONE] = "everyone",
    [LEDGER_VISIBLE_NOBODY] = "nobody",
};

enum { VISIBILITY_COUNT = sizeof(VISIBILITY_NAMES) / sizeof(VISIBILITY_NAMES[0]) };

void settings_json_write(struct buffer *out, const struct ledger_settings *settings)
{
    json_write_key_string(out, SLICE("presence_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->presence]));
    json_write_key_string(out, SLICE("last_seen_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->last_seen]));
}

bool settings_json_parse(struct slice name, enum ledger_visibility *out)
{
    for (int i = 0; i < VISIBILITY_COUNT; i++)
        if (slice_is(name, VISIBILITY_NAMES[i])) {
            *out = (enum ledger_visibility)i;
            return true;
        }
    return false;
}
