/* POST /dev/token {"user":"alice"} → {"token":"…"}, only with --dev, and only for this machine: no website may log in as
 * somebody. */
#include "api/api_routes.h"

enum { DEV_TOKEN_TTL_MS = 3600 * 1000 };

void rest_dev_token(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    const struct config *config = context->sessions->config;
    int64_t wall_ms = context->sessions->loop->clock.wall_ms;
    struct slice user;
    if (!context->dev_signer) {
        exchange_error(&exchange, 404, ERROR_NOT_FOUND, "there is nothing at this path");
        return;
    }
    if (!exchange_is_local(exchange)) {
        exchange_error(&exchange, 403, ERROR_FORBIDDEN,
                       "tokens are for pages of this machine: open http://localhost or "
                       "http://127.0.0.1 with the port of the server");
        return;
    }
    if (!api_read_json(&exchange))
        return;
    if (!fields_string(fields_find(&context->sessions->scratch, "user"), &user) ||
        !user_id_valid(user)) {
        exchange_error(&exchange, 400, ERROR_INVALID_MESSAGE,
                       "user must be a string of 1 to 128 bytes without control characters");
        return;
    }
    struct jwt_sign_claims claims = {
        .user = user,
        .issuer = slice_of(config->auth.issuer),
        .audience = slice_of(config->auth.audience),
        .issued_at_wall_ms = wall_ms,
        .expires_at_wall_ms = wall_ms + DEV_TOKEN_TTL_MS,
    };
    struct buffer token = BUFFER_INIT;
    struct buffer json = BUFFER_INIT;
    json.failed = !jwt_sign(context->dev_signer, &claims, &token);
    json_write_object(&json);
    json_write_key_string(&json, SLICE("token"), buffer_slice(&token));
    json_write_object_end(&json);
    buffer_free(&token);
    exchange_reply_json(&exchange, 200, &json);
}
