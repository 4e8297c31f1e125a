/* GET /v1/me, PATCH /v1/me: the user's own settings. */
#include "api/api_routes.h"
#include "api/settings_json.h"
#include "presence/visibility/visibility_change.h"

#include <stdlib.h>

static void reply_settings(struct exchange *exchange, const struct ledger_settings *settings)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), exchange_user(exchange));
    settings_json_write(&json, settings);
    json_write_object_end(&json);
    exchange_reply_json(&exchange, 200, &json);
}

static void on_settings_read(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status == LEDGER_OK)
        reply_settings(exchange, &outcome->settings);
    else
        api_ledger_error(&exchange, outcome->status);
}

void rest_me_get(struct exchange *exchange)
{
    ledger_settings_get(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                        on_settings_read, exchange);
}

/* An answer that waits until the visibility change is complete. */
struct settings_answer {
    struct exchange *exchange;
    struct ledger_settings settings;
};

static void on_settings_visible(void *arg)
{
    struct settings_answer *answer = arg;
    reply_settings(answer->exchange, &answer->settings);
    free(answer);
}

static void on_settings_stored(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct settings_answer *answer = outcome->status == LEDGER_OK ? malloc(sizeof(*answer)) : NULL;
    if (!answer) {
        api_ledger_error(&exchange,
                         outcome->status != LEDGER_OK ? outcome->status : LEDGER_UNAVAILABLE);
        return;
    }
    *answer = (struct settings_answer){exchange, outcome->settings};
    /* also if nothing changed: an earlier attempt may have been neither answered nor published */
    visibility_change_of_settings(api_context_of(exchange)->sessions->presence,
                                  exchange_user(exchange), &outcome->previous, &outcome->settings,
                                  on_settings_visible, answer);
}

/* Sets *chosen to NULL when the JSON member is absent. Returns false when it is invalid. */
static bool read_visibility(const struct fields_scratch *fields, const char *name,
                            enum ledger_visibility *storage, enum ledger_visibility **chosen)
{
    struct slice raw = fields_find(fields, name);
    struct slice text;
    *chosen = raw.data ? storage : NULL;
    return !raw.data || (fields_string(raw, &text) && settings_json_parse(text, storage));
}

void rest_me_patch(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    enum ledger_visibility values[2], *presence, *last_seen;
    if (!api_read_json(&exchange))
        return;
    if (read_visibility(&sessions->scratch, "presence_visibility", &values[0], &presence) &&
        read_visibility(&sessions->scratch, "last_seen_visibility", &values[1], &last_seen))
        ledger_settings_put(sessions->ledger, exchange_user(exchange), presence, last_seen,
                            on_settings_stored, exchange);
    else
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "presence_visibility and last_seen_visibility are everyone, contacts_only "
                       "or nobody");
}
