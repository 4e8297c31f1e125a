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

static void on_request_token_verified(void *arg, enum jwt_result result,
                                      const struct identity *identity)
{
    struct exchange *exchange = arg;
    uint32_t scope = scope_of_access(exchange->route->access);
    if (result == JWT_UNAVAILABLE) {
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, jwt_result_text(result));
    } else if (result != JWT_OK) {
        metrics_count(api_context_of(exchange)->sessions->metrics, METRIC_AUTH_FAILURES);
        exchange_error(&exchange, 401, ERROR_UNAUTHENTICATED, jwt_result_text(result));
    } else if (scope && !(identity->scopes & scope)) {
        exchange_error(&exchange, 403, ERROR_FORBIDDEN, "the token lacks the scope for this");
    } else {
        exchange->identity = *identity;
        http_connection_read_body(exchange);
    }
}

void api_access_check(struct exchange *exchange)
{
    struct slice token = exchange_token(exchange);
    if (!token.data)
        exchange_error(&exchange, 401, ERROR_UNAUTHENTICATED, "a bearer token is needed");
    else if (!session_context_verify(api_context_of(exchange)->sessions, token,
                                     on_request_token_verified, exchange))
        exchange_error(&exchange, 503, ERROR_SERVER_BUSY, "too many tokens wait to be verified");
}
