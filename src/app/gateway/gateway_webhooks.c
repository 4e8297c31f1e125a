#include "app/gateway/gateway_webhooks.h"

#include "protocol/fields.h"
#include "session/session.h"
#include "text/json.h"

/* Offers an event whose data is in `data`, and frees that. */
static void offer_webhook_event(struct webhook_sender *sender, enum ledger_event_type type,
                                struct slice subject, int64_t wall_ms, struct buffer *data)
{
    json_write_object_end(data);
    if (!data->failed)
        webhook_sender_offer(sender, &(struct ledger_event){.type = type,
                                                            .subject = subject,
                                                            .time_ms = wall_ms,
                                                            .data = buffer_slice(data)});
    buffer_free(data);
}

static void on_presence_for_webhooks(void *arg, const struct presence_change *change)
{
    struct webhook_sender *sender = arg;
    struct buffer data = BUFFER_INIT;
    struct message message = {.type = MESSAGE_PRESENCE_CHANGED, .change = *change};
    if (!webhook_sender_wants(sender, LEDGER_EVENT_PRESENCE_CHANGED))
        return;
    json_write_object(&data);
    fields_encode(&data, &message);
    offer_webhook_event(sender, LEDGER_EVENT_PRESENCE_CHANGED, change->presence.user_id,
                        change->timestamp_ms, &data);
}

static void on_session_for_webhooks(void *arg, const struct session *session, bool is_connected)
{
    struct webhook_sender *sender = arg;
    enum ledger_event_type type =
        is_connected ? LEDGER_EVENT_USER_CONNECTED : LEDGER_EVENT_USER_DISCONNECTED;
    char conn_id[ULID_TEXT_LEN];
    struct buffer data = BUFFER_INIT;
    if (!webhook_sender_wants(sender, type))
        return;
    ulid_write(conn_id, &session->conn_id);
    json_write_object(&data);
    json_write_key_string(&data, SLICE("user_id"), session_user(session));
    json_write_key_string(&data, SLICE("device_id"),
                          (struct slice){session->device, session->device_len});
    json_write_key_string(&data, SLICE("conn_id"), (struct slice){conn_id, sizeof(conn_id)});
    json_write_key_string(&data, SLICE("server_id"), session->context->gateway_id);
    offer_webhook_event(sender, type, session_user(session), session->context->loop->clock.wall_ms,
                        &data);
}

bool gateway_webhooks_make(struct webhook_sender **sender, const struct webhook_sender_parts *parts,
                           struct session_context *sessions)
{
    if (parts->endpoints->count == 0)
        return true;
    *sender = webhook_sender_make(parts);
    if (!*sender)
        return false;
    parts->ledger->event_queues = parts->endpoints->queues;
    parts->ledger->event_queue_count = parts->endpoints->queue_count;
    sessions->on_change = on_session_for_webhooks;
    sessions->on_change_arg = *sender;
    sessions->presence->on_change = on_presence_for_webhooks;
    sessions->presence->on_change_arg = *sender;
    return true;
}
