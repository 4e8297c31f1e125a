#include "session/admission.h"

#include "hooks/connect_hook.h"
#include "log/log.h"
#include "session/session.h"

#define NOT_REGISTERED_TEXT "the connection cannot be registered"

const char *admission_refusal(const struct session_context *context)
{
    if (context->draining)
        return "this gateway is draining";
    if (!state_available(context->presence->store))
        return "the state store does not answer";
    return bus_is_reachable(context->presence->bus) ? NULL : ADMISSION_NOT_REACHABLE_TEXT;
}

static void refuse_admission_token(struct admission *admission, enum jwt_result result)
{
    metrics_count(admission->context->metrics, METRIC_AUTH_FAILURES);
    log_info("token_refused", "reason=%s", jwt_result_label(result));
    admission->hooks->on_end(admission, ADMISSION_TOKEN_REFUSED, jwt_result_text(result));
}

void admission_resume(struct admission *admission)
{
    const struct admission_hooks *hooks = admission->hooks;
    struct session_context *context = admission->context;
    if (!verifier_accepts(context->verifier, &admission->identity)) { /* any more */
        presence_close(context->presence, identity_user(&admission->identity), &admission->conn_id);
        refuse_admission_token(admission, JWT_REVOKED);
        return;
    }
    /* a drain that has begun has counted its sessions */
    if (hooks->is_present(admission) && !context->draining && hooks->open_session(admission)) {
        hooks->on_end(admission, ADMISSION_ADMITTED, NULL);
        return;
    }
    presence_close(context->presence, identity_user(&admission->identity), &admission->conn_id);
    hooks->on_end(admission, ADMISSION_NOT_REGISTERED, NOT_REGISTERED_TEXT);
}

static void admission_on_lease_opened(void *arg, bool registered)
{
    struct admission *admission = arg;
    session_context_note_opened(admission->context);
    if (!registered)
        admission->hooks->on_end(admission, ADMISSION_NOT_REGISTERED, NOT_REGISTERED_TEXT);
    else if (admission->hooks->prepare)
        admission->hooks->prepare(admission);
    else
        admission_resume(admission);
}

/* Returns false after refusing a client that has left meanwhile, or that the gateway does not take any more. */
static bool admission_may_go_on(struct admission *admission)
{
    const struct admission_hooks *hooks = admission->hooks;
    if (!hooks->is_present(admission)) {
        hooks->on_end(admission, ADMISSION_CLIENT_GONE, NULL);
        return false;
    }
    const char *refusal = admission_refusal(admission->context);
    if (!refusal && hooks->refusal)
        refusal = hooks->refusal(admission);
    if (refusal)
        hooks->on_end(admission, ADMISSION_UNAVAILABLE, refusal);
    return refusal == NULL;
}

static void admission_open_lease(struct admission *admission)
{
    struct session_context *context = admission->context;
    struct lease lease = {
        .conn_id = admission->conn_id,
        .user_id = identity_user(&admission->identity),
        .device_id = admission_device(admission),
        .gateway_id = context->gateway_id,
        .connected_at_ms = ulid_time_ms(&admission->conn_id),
        .last_heartbeat_ms = context->loop->clock.wall_ms,
    };
    session_limit_lease(context, &lease);
    session_context_note_opening(context);
    presence_open(context->presence, &lease, admission_on_lease_opened, admission);
}

/* ---- the application's word ---- */

static void admission_on_name_stored(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct admission *admission = arg;
    if (outcome->status != LEDGER_OK)
        log_warn("display_name_not_stored", "user=%s status=%s",
                 log_quote(identity_user(&admission->identity)),
                 ledger_status_name(outcome->status));
    if (admission_may_go_on(admission))
        admission_open_lease(admission);
}

/* A name that is known already costs no write. */
static void admission_on_settings_read(void *arg, const struct ledger_settings_outcome *outcome)
{
    struct admission *admission = arg;
    struct slice name = admission_display_name(admission);
    if (outcome->status != LEDGER_OK || slice_equal(outcome->appearance.display_name, name))
        admission_on_name_stored(admission, outcome);
    else
        ledger_settings_put(admission->context->ledger, identity_user(&admission->identity),
                            &(struct ledger_settings_patch){.display_name = &name},
                            admission_on_name_stored, admission);
}

static void admission_on_application_answered(void *arg, const struct connect_answer *answer)
{
    struct admission *admission = arg;
    if (answer->verdict == CONNECT_REFUSED) {
        metrics_count(admission->context->metrics, METRIC_HOOKS_CONNECTIONS_REFUSED);
        admission->hooks->on_end(admission, ADMISSION_REFUSED, answer->text);
        return;
    }
    if (answer->verdict == CONNECT_UNDECIDED) {
        admission->hooks->on_end(admission, ADMISSION_UNAVAILABLE, answer->text);
        return;
    }
    if (!admission_may_go_on(admission))
        return;
    if (answer->has_scope)
        admission->identity.scopes = answer->scopes;
    if (!answer->display_name.len) {
        admission_open_lease(admission);
        return;
    }
    admission->display_name_len = answer->display_name.len;
    memcpy(admission->display_name, answer->display_name.data, answer->display_name.len);
    ledger_settings_get(admission->context->ledger, identity_user(&admission->identity),
                        admission_on_settings_read, admission);
}

static void admission_on_token_verified(void *arg, enum jwt_result result,
                                        const struct identity *identity)
{
    struct admission *admission = arg;
    const struct admission_hooks *hooks = admission->hooks;
    struct session_context *context = admission->context;
    if (result == JWT_UNAVAILABLE) {
        hooks->on_end(admission, ADMISSION_UNAVAILABLE, jwt_result_text(result));
        return;
    }
    if (result != JWT_OK) {
        refuse_admission_token(admission, result);
        return;
    }
    if (!admission_may_go_on(admission))
        return;
    admission->identity = *identity;
    if (context->connect_hook)
        connect_hook_ask(context->connect_hook, identity, admission_device(admission),
                         &admission->conn_id, admission_on_application_answered, admission);
    else
        admission_open_lease(admission);
}

bool admission_begin(struct admission *admission, struct session_context *context,
                     const struct admission_hooks *hooks, struct slice token, struct slice device)
{
    admission->hooks = hooks;
    admission->context = context;
    admission->conn_id = ulid_make(context->loop->clock.wall_ms, context->random);
    admission->display_name_len = 0;
    admission->device_len = device.len ? device.len : ULID_TEXT_LEN;
    if (device.len)
        memcpy(admission->device, device.data, device.len);
    else
        ulid_write(admission->device, &admission->conn_id);
    return session_context_verify(context, token, admission_on_token_verified, admission);
}
