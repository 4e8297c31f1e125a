/* GET /v1/me, PATCH /v1/me: the user's own settings. */
#include "api/api_routes.h"
#include "api/settings_json.h"
#include "presence/visibility/visibility_change.h"

#include <stdlib.h>

static struct buffer write_me(struct slice user, const struct ledger_settings_outcome *outcome)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("user_id"), user);
    settings_json_write(&json, &outcome->settings);
    settings_json_write_appearance(&json, &outcome->appearance);
    json_write_object_end(&json);
    return json;
}

static void on_settings_read(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    if (outcome->status != LEDGER_OK) {
        api_ledger_error(&exchange, outcome->status);
        return;
    }
    struct buffer json = write_me(exchange_user(exchange), outcome);
    exchange_reply_json(&exchange, 200, &json);
}

void rest_me_get(struct exchange *exchange)
{
    ledger_settings_get(api_context_of(exchange)->sessions->ledger, exchange_user(exchange),
                        on_settings_read, exchange);
}

/* An answer that waits until the visibility change is complete. */
struct settings_answer {
    struct exchange *exchange;
    struct buffer json;
};

static void on_settings_visible(void *arg)
{
    struct settings_answer *answer = arg;
    exchange_reply_json(&answer->exchange, 200, &answer->json);
    free(answer);
}

static void on_visibility_stored(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct exchange *exchange = arg;
    struct settings_answer *answer = outcome->status == LEDGER_OK ? malloc(sizeof(*answer)) : NULL;
    if (!answer) {
        api_ledger_error(&exchange,
                         outcome->status != LEDGER_OK ? outcome->status : LEDGER_UNAVAILABLE);
        return;
    }
    *answer = (struct settings_answer){exchange, write_me(exchange_user(exchange), outcome)};
    /* also if nothing changed: an earlier attempt may have been neither answered nor published */
    visibility_change_of_settings(api_context_of(exchange)->sessions->presence,
                                  exchange_user(exchange), &outcome->previous, &outcome->settings,
                                  on_settings_visible, answer);
}

/* Only the visibilities change who sees the user. */
void rest_me_patch(struct exchange *exchange)
{
    struct session_context *sessions = api_context_of(exchange)->sessions;
    struct settings_json_values values;
    struct ledger_settings_patch patch;
    if (!api_read_json(&exchange))
        return;
    const char *problem = settings_json_read(&sessions->scratch, &values, &patch);
    if (problem)
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, problem);
    else
        ledger_settings_put(
            sessions->ledger, exchange_user(exchange), &patch,
            patch.presence || patch.last_seen ? on_visibility_stored : on_settings_read, exchange);
}
