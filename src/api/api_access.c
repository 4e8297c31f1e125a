#include "api/api_access.h"

#include "api/api_routes.h"
#include "http/http_connection.h"

/* The scope that a route needs; 0: any token serves. */
static uint32_t scope_of_access(unsigned access)
{
    switch (access) {
    case REST_ADMIN:
        return IDENTITY_SCOPE_ADMIN;
    case REST_DELIVER:
        return IDENTITY_SCOPE_DELIVER;
    case REST_SERVICE:
        return IDENTITY_SCOPE_SERVICE;
    default:
        return 0;
    }
}

static void refuse_unknown_bearer(struct exchange *exchange, const char *text)
{
    metrics_count(api_context_of(exchange)->sessions->metrics, METRIC_AUTH_FAILURES);
    exchange_error(&exchange, 401, ERROR_UNAUTHENTICATED, text);
}

static void admit_request(struct exchange *exchange, const struct identity *identity)
{
    exchange->identity = *identity;
    http_connection_read_body(exchange);
}

/* ---- tokens ---- */

static void on_request_token_verified(void *arg, enum jwt_result result,
                                      const struct identity *identity)
{
    struct exchange *exchange = arg;
    uint32_t scope = scope_of_access(exchange->route->access);
    if (result == JWT_UNAVAILABLE)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, jwt_result_text(result));
    else if (result != JWT_OK)
        refuse_unknown_bearer(exchange, jwt_result_text(result));
    else if (scope && !(identity->scopes & scope))
        exchange_error(&exchange, 403, ERROR_FORBIDDEN, "the token lacks the scope for this");
    else
        admit_request(exchange, identity);
}

/* ---- API keys ---- */

static void on_request_key_verified(void *arg, enum api_keys_result result,
                                    const struct identity *identity)
{
    struct exchange *exchange = arg;
    uint32_t scope = scope_of_access(exchange->route->access);
    if (result == API_KEYS_UNKNOWN)
        refuse_unknown_bearer(exchange, "there is no such API key");
    else if (result == API_KEYS_BUSY)
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many keys wait to be verified");
    else if (result == API_KEYS_UNAVAILABLE)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "the ledger does not answer");
    else if (!scope)
        exchange_error(&exchange, 403, ERROR_FORBIDDEN,
                       "an API key is no user: use /v1/service, and name whom you act for");
    else if (!(identity->scopes & scope))
        exchange_error(&exchange, 403, ERROR_FORBIDDEN, "the API key lacks the scope for this");
    else
        admit_request(exchange, identity);
}

void api_access_check(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    struct slice token = exchange_token(exchange);
    bool in_header = http1_header(&exchange->head, SLICE("Authorization")).data != NULL;
    if (!token.data)
        exchange_error(&exchange, 401, ERROR_UNAUTHENTICATED, "a bearer token is needed");
    else if (api_keys_is_key(token) && in_header)
        api_keys_verify(&context->keys, token, on_request_key_verified, exchange);
    else if (!session_context_verify(context->sessions, token, on_request_token_verified, exchange))
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}
