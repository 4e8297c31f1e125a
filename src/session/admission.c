#include "session/admission.h"

#include "log/log.h"
#include "session/session.h"

#define NOT_REGISTERED_TEXT "the connection cannot be registered"

const char *admission_refusal(const struct session_context *context)
{
    if (context->draining)
        return "this gateway is draining";
    return state_available(context->presence->store) ? NULL : "the state store does not answer";
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
    if (!registered)
        admission->hooks->on_end(admission, ADMISSION_NOT_REGISTERED, NOT_REGISTERED_TEXT);
    else if (admission->hooks->prepare)
        admission->hooks->prepare(admission);
    else
        admission_resume(admission);
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
    if (!hooks->is_present(admission)) {
        hooks->on_end(admission, ADMISSION_CLIENT_GONE, NULL);
        return;
    }
    const char *refusal = admission_refusal(context);
    if (!refusal && hooks->refusal)
        refusal = hooks->refusal(admission);
    if (refusal) {
        hooks->on_end(admission, ADMISSION_UNAVAILABLE, refusal);
        return;
    }
    admission->identity = *identity;
    struct lease lease = {
        .conn_id = admission->conn_id,
        .user_id = identity_user(&admission->identity),
        .device_id = admission_device(admission),
        .gateway_id = context->gateway_id,
        .connected_at_ms = ulid_time_ms(&admission->conn_id),
        .last_heartbeat_ms = context->loop->clock.wall_ms,
    };
    session_limit_lease(context, &lease);
    presence_open(context->presence, &lease, admission_on_lease_opened, admission);
}

bool admission_begin(struct admission *admission, struct session_context *context,
                     const struct admission_hooks *hooks, struct slice token, struct slice device)
{
    admission->hooks = hooks;
    admission->context = context;
    admission->conn_id = ulid_make(context->loop->clock.wall_ms, context->random);
    admission->device_len = device.len ? device.len : ULID_TEXT_LEN;
    if (device.len)
        memcpy(admission->device, device.data, device.len);
    else
        ulid_write(admission->device, &admission->conn_id);
    return session_context_verify(context, token, admission_on_token_verified, admission);
}
