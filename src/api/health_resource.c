/* GET /healthz, /readyz, /metrics */
#include "api/api_routes.h"

void rest_health(struct exchange *exchange)
{
    exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ok\"}"));
}

/* Alive and able to take somebody new are two questions. */
void rest_ready(struct exchange *exchange)
{
    struct api_context *context = rest_of(exchange);
    const char *why = NULL;
    if (context->handlers->draining)
        why = "draining";
    else if (!state_available(context->handlers->presence->store))
        why = "the state store does not answer";
    else if (context->shedding)
        why = "memory is short";
    if (why)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, why);
    else
        exchange_reply(&exchange, 200, "application/json", "", SLICE("{\"status\":\"ready\"}"));
}

void rest_metrics(struct exchange *exchange)
{
    struct api_context *context = rest_of(exchange);
    struct buffer text = BUFFER_INIT;
    if (context->sample)
        context->sample(context->sample_arg);
    exposition_write(&text, context->exposition, context->handlers->loop->clock.now_ms);
    if (text.failed)
        exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
    else
        exchange_reply(&exchange, 200, EXPOSITION_CONTENT_TYPE, "", buffer_slice(&text));
    buffer_free(&text);
}
