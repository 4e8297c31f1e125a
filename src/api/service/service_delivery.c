#include "api/service/service_delivery.h"

#include "session/session.h"

#include <stdlib.h>

struct service_delivery {
    struct exchange *exchange;
    struct session_context *sessions;
    struct message message;
    struct delivery_locals locals;
    struct id_list users; /* owned; sorted, each once */
    size_t user_count;
    size_t sent; /* users of earlier batches */
    size_t batch_count;
    size_t accepted;
    struct wheel_timer step;
};

/* ---- life ---- */

struct service_delivery *service_delivery_make(struct exchange **exchange,
                                               const struct message *message)
{
    struct service_delivery *delivery = malloc(sizeof(*delivery));
    struct session_context *sessions = api_context_of(*exchange)->sessions;
    if (!delivery) {
        exchange_error(exchange, 503, ERROR_SERVICE_UNAVAILABLE, "out of memory");
        return NULL;
    }
    *delivery = (struct service_delivery){
        .exchange = *exchange,
        .sessions = sessions,
        .message = *message,
        .locals = session_context_locals(sessions),
    };
    return delivery;
}

void service_delivery_free(struct service_delivery **delivery)
{
    id_list_free(&(*delivery)->users);
    free(*delivery);
    *delivery = NULL;
}

struct exchange *service_delivery_exchange(const struct service_delivery *delivery)
{
    return delivery->exchange;
}

static void accept_delivery(struct service_delivery *delivery)
{
    struct exchange *exchange = delivery->exchange;
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_int(&json, SLICE("accepted"), (int64_t)delivery->accepted);
    json_write_object_end(&json);
    service_delivery_free(&delivery);
    exchange_reply_json(&exchange, 200, &json);
}

static void fail_delivery(struct service_delivery *delivery)
{
    struct exchange *exchange = delivery->exchange;
    service_delivery_free(&delivery);
    exchange_error(&exchange, 503, ERROR_SERVICE_UNAVAILABLE,
                   "routes cannot be read at present, and no peer link carries the event");
}

/* ---- users ---- */

static void on_delivery_batch_sent(void *arg, enum delivery_result result, size_t users)
{
    struct service_delivery *delivery = arg;
    struct loop *loop = delivery->sessions->loop;
    delivery->accepted += users;
    delivery->sent += delivery->batch_count;
    if (result != DELIVERY_SENT)
        fail_delivery(delivery);
    else if (delivery->sent == delivery->user_count)
        accept_delivery(delivery);
    else
        loop_set_timer(loop, &delivery->step, loop->clock.now_ms + SERVICE_DELIVERY_STEP_MS);
}

static void send_delivery_batch(struct wheel_timer *timer)
{
    struct service_delivery *delivery = CONTAINER_OF(timer, struct service_delivery, step);
    size_t left = delivery->user_count - delivery->sent;
    delivery->batch_count =
        left < SERVICE_DELIVERY_BATCH_USERS ? left : SERVICE_DELIVERY_BATCH_USERS;
    delivery_send_counted(delivery->sessions->delivery, delivery->users.ids + delivery->sent,
                          delivery->batch_count, &delivery->message, &delivery->locals,
                          on_delivery_batch_sent, delivery);
}

void service_delivery_to_users(struct service_delivery *delivery, const struct slice *users,
                               size_t count)
{
    if (!id_list_copy(&delivery->users, users, count)) {
        fail_delivery(delivery);
        return;
    }
    delivery->user_count = id_list_sort_unique((struct slice *)delivery->users.ids, count);
    delivery->step.fire = send_delivery_batch;
    send_delivery_batch(&delivery->step);
}

/* ---- everyone ---- */

/* Nobody can list the gateways, or count who is online. */
static void broadcast_delivery(struct service_delivery *delivery)
{
    struct session_context *sessions = delivery->sessions;
    if (delivery_broadcast_everyone(sessions->delivery, &delivery->message) == DELIVERY_SENT)
        accept_delivery(delivery);
    else
        fail_delivery(delivery);
}

/* This gateway hears it too when the list does not name it yet. */
static void on_delivery_gateways_read(void *arg, enum state_status status,
                                      const struct gateway_info *gateways, size_t count)
{
    struct service_delivery *delivery = arg;
    struct session_context *sessions = delivery->sessions;
    if (status != STATE_OK) {
        broadcast_delivery(delivery);
        return;
    }
    struct slice *ids = calloc(count + 1, sizeof(*ids));
    size_t id_count = 1;
    if (!ids) {
        fail_delivery(delivery);
        return;
    }
    ids[0] = sessions->gateway_id;
    for (size_t i = 0; i < count; i++)
        if (!slice_equal(gateways[i].gateway_id, sessions->gateway_id))
            ids[id_count++] = gateways[i].gateway_id;
    bool is_sent = delivery_send_everyone(sessions->delivery, ids, id_count, &delivery->message);
    free(ids);
    if (is_sent)
        accept_delivery(delivery);
    else
        fail_delivery(delivery);
}

static void on_delivery_online_counted(void *arg, enum state_status status, size_t count)
{
    struct service_delivery *delivery = arg;
    struct session_context *sessions = delivery->sessions;
    delivery->accepted = status == STATE_OK ? count : router_user_count(sessions->router);
    if (status == STATE_OK)
        state_gateways(sessions->presence->store, on_delivery_gateways_read, delivery);
    else
        broadcast_delivery(delivery);
}

void service_delivery_to_everyone(struct service_delivery *delivery)
{
    state_count_online(delivery->sessions->presence->store, on_delivery_online_counted, delivery);
}
