/* GET /healthz, /readyz, /metrics */
#include "api/api_routes.h"
#include "session/admission.h"

void rest_health(struct exchange *exchange)
{
    exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ok\"}"));
}

/* A live gateway may still be unable to take new connections. */
void rest_ready(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    const char *why = NULL;
    if (context->sessions->draining)
        why = "draining";
    else if (!state_available(context->sessions->presence->store))
        why = "the state store does not answer";
    else if (!bus_is_reachable(context->sessions->presence->bus))
        why = ADMISSION_NOT_REACHABLE_TEXT;
    else if (!context->sessions->verifier->keys)
        why = "there are no keys to verify tokens with yet";
    else if (context->shedding)
        why = API_SHEDDING_TEXT;
    if (why)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, why);
    else
        exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ready\"}"));
}

void rest_metrics(struct exchange *exchange)
{
    struct api_context *context = api_context_of(exchange);
    struct buffer text = BUFFER_INIT;
    if (context->sample)
        context->sample(context->sample_arg);
    exposition_write(&text, context->exposition, context->sessions->loop->clock.now_ms);
    if (text.failed)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        exchange_reply(&exchange, 200, EXPOSITION_CONTENT_TYPE, "", buffer_slice(&text));
    buffer_free(&text);
}
