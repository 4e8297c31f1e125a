/*
 * GET /admin/v1/explain/{user}: why a user's presence is what it is. Reads leases, presence, history and settings
 * one after the other and writes each as it arrives.
 */
#include "api/admin_json.h"
#include "api/api_routes.h"
#include "api/settings_json.h"

#include <stdlib.h>

struct explanation {
    struct exchange *exchange;
    struct buffer json;
    size_t lease_count;
    size_t idle_count;
    enum presence_status status;
};

static struct state_store *explained_store(const struct explanation *explanation)
{
    return api_context_of(explanation->exchange)->sessions->presence->store;
}

static struct slice explained_user(const struct explanation *explanation)
{
    return explanation->exchange->parameters[0];
}

static void abandon_explanation(struct explanation *explanation)
{
    exchange_error(&explanation->exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                   "a store does not answer");
    buffer_free(&explanation->json);
    free(explanation);
}

static const char *explain_merge(const struct explanation *explanation)
{
    if (explanation->lease_count == 0)
        return explanation->status == PRESENCE_OFFLINE
                   ? "no live lease: offline"
                   : "no live lease, within the offline grace: shown as before";
    if (explanation->idle_count == explanation->lease_count)
        return "every live lease is idle: away";
    return "at least one live lease is active: online";
}

static void on_explained_settings(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct explanation *explanation = arg;
    struct buffer *json = &explanation->json;
    if (outcome->status != LEDGER_OK) {
        abandon_explanation(explanation);
        return;
    }
    json_write_key(json, SLICE("settings"));
    json_write_object(json);
    settings_json_write(json, &outcome->settings);
    json_write_object_end(json);
    json_write_object_end(json);
    exchange_reply_json(&explanation->exchange, 200, json);
    free(explanation);
}

static void on_explained_history(void *arg, enum state_status status,
                                 const struct state_history *history, size_t count)
{
    struct explanation *explanation = arg;
    struct buffer *json = &explanation->json;
    if (status != STATE_OK) {
        abandon_explanation(explanation);
        return;
    }
    json_write_key(json, SLICE("last_transitions"));
    json_write_array(json);
    for (size_t i = 0; i < count; i++) {
        json_write_object(json);
        admin_write_time(json, SLICE("at"), history[i].at_ms);
        json_write_key_string(json, SLICE("status"),
                              slice_of(presence_status_name(history[i].status)));
        json_write_key_int(json, SLICE("version"), history[i].version);
        json_write_key_string(json, SLICE("cause"), slice_of(history[i].cause));
        json_write_object_end(json);
    }
    json_write_array_end(json);
    ledger_settings_get(api_context_of(explanation->exchange)->sessions->ledger,
                        explained_user(explanation), on_explained_settings, explanation);
}

static void on_explained_presence(void *arg, enum state_status status,
                                  const struct presence *presences, size_t count)
{
    struct explanation *explanation = arg;
    if (status != STATE_OK || count != 1) {
        abandon_explanation(explanation);
        return;
    }
    explanation->status = presences[0].status;
    json_write_key(&explanation->json, SLICE("presence"));
    fields_write_presence(&explanation->json, &presences[0]);
    json_write_key_string(&explanation->json, SLICE("merge"), slice_of(explain_merge(explanation)));
    state_history(explained_store(explanation), explained_user(explanation), on_explained_history,
                  explanation);
}

static void on_explained_leases(void *arg, enum state_status status, const struct lease *leases,
                                size_t count)
{
    struct explanation *explanation = arg;
    if (status != STATE_OK) {
        abandon_explanation(explanation);
        return;
    }
    explanation->lease_count = count;
    for (size_t i = 0; i < count; i++)
        explanation->idle_count += leases[i].idle;
    json_write_key(&explanation->json, SLICE("leases"));
    admin_write_leases(&explanation->json, leases, count);
    struct slice user = explained_user(explanation);
    state_read(explained_store(explanation), &user, 1, on_explained_presence, explanation);
}

void rest_admin_explain(struct exchange *exchange)
{
    if (!user_id_valid(exchange->parameters[0])) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE, "this is not a user id");
        return;
    }
    struct explanation *explanation = calloc(1, sizeof(*explanation));
    if (!explanation) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return;
    }
    explanation->exchange = exchange;
    json_write_object(&explanation->json);
    json_write_key_string(&explanation->json, SLICE("user_id"), explained_user(explanation));
    state_leases(explained_store(explanation), explained_user(explanation), on_explained_leases,
                 explanation);
}
