#include "socketio/socketio_context.h"

#include "socketio/codec/socketio_dialect.h"
#include "socketio/handover.h"
#include "socketio/polling.h"
#include "socketio/socketio_join.h"
#include "socketio/socketio_recovery.h"
#include "socketio/socketio_resource.h"

static bool socketio_displace_for_transport(struct api_transport *transport)
{
    return socketio_displace_waiting(CONTAINER_OF(transport, struct socketio_context, transport));
}

bool socketio_context_init(struct socketio_context *context, struct api_context *api,
                           struct session_context *sessions, uint64_t hash_seed)
{
    context->api = api;
    context->sessions = sessions;
    context->transport = (struct api_transport){
        .routes = SOCKETIO_ROUTES,
        .route_count = SOCKETIO_ROUTE_COUNT,
        .on_head = socketio_on_head,
        .body_bytes_max = polling_body_bytes_max,
        .give_away = handover_give,
        .displace = socketio_displace_for_transport,
    };
    context->hooks = (struct session_hooks){
        .has_event = socketio_recovery_has,
        .on_event = socketio_recovery_note,
        .leave = socketio_disconnect,
    };
    list_init(&context->waiting);
    list_init(&context->joining);
    api->transport = &context->transport;
    sessions->hooks = &context->hooks;
    return table_init(&context->polling, hash_seed, polling_match);
}

void socketio_context_free(struct socketio_context *context)
{
    table_free(&context->polling);
}

void socketio_context_limit(struct connection_context *connections)
{
    size_t bytes_max = connections->config->socketio.max_payload_bytes;
    connection_context_limit(connections, &DIALECT_TABLE_SOCKETIO, bytes_max);
    connection_context_limit(connections, &DIALECT_TABLE_SOCKETIO_PACKED, bytes_max);
}
