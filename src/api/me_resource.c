/* GET /v1/me, PATCH /v1/me: one's own settings. */
#include "api/api_routes.h"
#include "presence/visibility/visibility_change.h"

#include <stdlib.h>

static const char *const VISIBILITY_NAMES[] = {
    [LEDGER_VISIBLE_CONTACTS_ONLY] = "contacts_only",
    [LEDGER_VISIBLE_EVERYONE] = "everyone",
    [LEDGER_VISIBLE_NOBODY] = "nobody",
};

enum { VISIBILITY_COUNT = sizeof(VISIBILITY_NAMES) / sizeof(VISIBILITY_NAMES[0]) };

static void reply(struct exchange *exchange, const struct ledger_settings *settings)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), exchange_user(exchange));
    json_write_key_string(&json, SLICE("presence_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->presence]));
    json_write_key_string(&json, SLICE("last_seen_visibility"),
                          slice_of(VISIBILITY_NAMES[settings->last_seen]));
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

static void got(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        reply(exchange, &outcome->settings);
    else
        rest_ledger_error(&exchange, outcome->status);
}

void rest_me_get(struct exchange *exchange)
{
    ledger_settings_get(rest_of(exchange)->handlers->ledger, exchange_user(exchange), got,
                        exchange);
}

/* An answer that waits until everybody has been told. */
struct changing {
    struct exchange *exchange;
    struct ledger_settings settings;
};

static void changed(void *arg)
{
    struct changing *changing = arg;
    reply(changing->exchange, &changing->settings);
    free(changing);
}

static void put(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct changing *changing = outcome->status == LEDGER_OK ? malloc(sizeof(*changing)) : NULL;
    if (!changing) {
        rest_ledger_error(&exchange,
                          outcome->status != LEDGER_OK ? outcome->status : LEDGER_UNAVAILABLE);
        return;
    }
    *changing = (struct changing){exchange, outcome->settings};
    /* the same as before, maybe because the one who set it was not answered, and nobody told */
    visibility_change_of_settings(rest_of(exchange)->handlers->presence, exchange_user(exchange),
                                  &outcome->previous, &outcome->settings, changed, changing);
}

/* NULL in *chosen when the member is absent. False: it is there and wrong. */
static bool read_visibility(const struct fields_scratch *fields, const char *name,
                            enum ledger_visibility *storage, enum ledger_visibility **chosen)
{
    struct slice raw = fields_find(fields, name);
    struct slice text;
    *chosen = NULL;
    if (!raw.data)
        return true;
    if (!fields_string(raw, &text))
        return false;
    for (int i = 0; i < VISIBILITY_COUNT; i++)
        if (slice_is(text, VISIBILITY_NAMES[i])) {
            *storage = (enum ledger_visibility)i;
            *chosen = storage;
            return true;
        }
    return false;
}

void rest_me_patch(struct exchange *exchange)
{
    struct session_context *handlers = rest_of(exchange)->handlers;
    enum ledger_visibility values[2], *presence, *last_seen;
    if (!rest_json(&exchange))
        return;
    if (read_visibility(&handlers->scratch, "presence_visibility", &values[0], &presence) &&
        read_visibility(&handlers->scratch, "last_seen_visibility", &values[1], &last_seen))
        ledger_settings_put(handlers->ledger, exchange_user(exchange), presence, last_seen, put,
                            exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "presence_visibility and last_seen_visibility are everyone, contacts_only "
                       "or nobody");
}
