#include "redis/redis_request.h"

#include "base/container.h"
#include "redis/redis_socket.h"

#include <stdlib.h>

static void send_request_to(struct redis_request *request, struct redis_connection *connection,
                            bool asking);

static int64_t requests_now_ms(const struct redis_requests *requests)
{
    return requests->cluster->context.loop->clock.now_ms;
}

static void finish_request(struct redis_request *request, const struct resp_value *reply)
{
    if (request->done)
        request->done(request->arg, reply);
    free(request);
}

/* ---- retries ---- */

static void set_request_retry_timer(struct redis_requests *requests)
{
    if (requests->waiting)
        loop_set_timer(requests->cluster->context.loop, &requests->timer,
                       requests->waiting->retry_ms);
}

/* All requests wait equally long, so the list stays sorted. */
static void retry_request_later(struct redis_request *request)
{
    struct redis_requests *requests = request->requests;
    request->retry_ms = requests_now_ms(requests) + REDIS_RETRY_DELAY_MS;
    if (request->retry_ms > request->limit_ms ||
        requests->waiting_count == REDIS_RETRIES_WAITING_MAX) {
        finish_request(request, NULL);
        return;
    }
    request->next = NULL;
    *requests->waiting_end = request;
    requests->waiting_end = &request->next;
    requests->waiting_count++;
    if (!wheel_is_set(&requests->timer))
        set_request_retry_timer(requests);
}

static struct redis_request *take_first_waiting_request(struct redis_requests *requests)
{
    struct redis_request *request = requests->waiting;
    requests->waiting = request->next;
    if (!requests->waiting)
        requests->waiting_end = &requests->waiting;
    requests->waiting_count--;
    return request;
}

static void on_request_retry_timer(struct wheel_timer *timer)
{
    struct redis_requests *requests = CONTAINER_OF(timer, struct redis_requests, timer);
    while (requests->waiting && requests->waiting->retry_ms <= requests_now_ms(requests))
        redis_request_send(take_first_waiting_request(requests));
    set_request_retry_timer(requests);
}

/* ---- replies ---- */

static void redirect_request(struct redis_request *request, const struct resp_value *error,
                             bool asking)
{
    struct redis_cluster *cluster = request->requests->cluster;
    struct redis_connection *owner = redis_cluster_connection(cluster, request->slot);
    const char *asked_host =
        owner ? redis_connection_address(owner)->host : cluster->url->seeds[0].host;
    struct redis_address address;
    uint16_t slot;
    if (request->redirects++ == REDIS_REDIRECTS_MAX ||
        !redis_topology_redirect(error->text, asked_host, &slot, &address)) {
        finish_request(request, NULL);
        return;
    }
    send_request_to(request,
                    asking ? redis_cluster_connection_to(cluster, &address)
                           : redis_cluster_slot_moved(cluster, slot, &address),
                    asking);
}

static void on_request_answered(void *arg, const struct resp_value *reply)
{
    struct redis_request *request = arg;
    if (!reply || reply->type != RESP_ERROR) {
        finish_request(request, reply);
        return;
    }
    if (request->script && !request->wants_source && resp_is_error(reply, "NOSCRIPT")) {
        request->wants_source = true;
        redis_request_send(request);
    } else if (resp_is_error(reply, "MOVED")) {
        redirect_request(request, reply, false);
    } else if (resp_is_error(reply, "ASK")) {
        redirect_request(request, reply, true);
    } else if (resp_is_error(reply, "TRYAGAIN")) {
        retry_request_later(request);
    } else if (resp_is_error(reply, "CLUSTERDOWN")) {
        redis_cluster_report_down(request->requests->cluster);
        retry_request_later(request);
    } else {
        finish_request(request, reply);
    }
}

/* ---- sending ---- */

static struct slice write_request_command(const struct redis_request *request,
                                          struct redis_connection *connection)
{
    struct buffer *scratch = &request->requests->scratch;
    struct slice bytes = {request->bytes, request->len};
    if (!request->script)
        return bytes;
    buffer_clear(scratch);
    if (!redis_script_mark_sent(redis_connection_scripts(connection), request->script) ||
        request->wants_source)
        redis_script_write_source(request->script, request->argument_count, scratch);
    else
        redis_script_write_sha(request->script, request->argument_count, scratch);
    buffer_append_slice(scratch, bytes);
    return scratch->failed ? SLICE_NONE : buffer_slice(scratch);
}

/* The reply to ASKING is not needed. */
static void send_request_to(struct redis_request *request, struct redis_connection *connection,
                            bool asking)
{
    static const struct slice ask_first = SLICE("*1\r\n$6\r\nASKING\r\n");
    struct slice command = connection ? write_request_command(request, connection) : SLICE_NONE;
    bool sent = command.len > 0;
    if (sent && asking)
        sent = redis_connection_send(connection, ask_first, NULL, NULL);
    if (!sent || !redis_connection_send(connection, command, on_request_answered, request))
        finish_request(request, NULL);
}

void redis_request_send(struct redis_request *request)
{
    struct redis_cluster *cluster = request->requests->cluster;
    send_request_to(request,
                    request->any_slot ? redis_cluster_any_connection(cluster)
                                      : redis_cluster_connection(cluster, request->slot),
                    false);
}

struct redis_request *redis_request_make(struct redis_requests *requests, redis_reply_done done,
                                         void *arg)
{
    struct slice bytes = buffer_slice(&requests->scratch);
    struct redis_request *request = NULL;
    if (!requests->scratch.failed)
        request = malloc(sizeof(*request) + bytes.len);
    if (!request)
        return NULL;
    *request =
        (struct redis_request){.requests = requests,
                               .done = done,
                               .arg = arg,
                               .limit_ms = requests_now_ms(requests) + REDIS_REQUEST_LIMIT_MS,
                               .len = bytes.len};
    memcpy(request->bytes, bytes.data, bytes.len);
    return request;
}

void redis_requests_init(struct redis_requests *requests, struct redis_cluster *cluster)
{
    *requests = (struct redis_requests){.cluster = cluster,
                                        .timer = {.fire = on_request_retry_timer},
                                        .scratch = BUFFER_BOUNDED(REDIS_OUT_BYTES_MAX)};
    requests->waiting_end = &requests->waiting;
}

void redis_requests_cancel(struct redis_requests *requests)
{
    loop_cancel_timer(requests->cluster->context.loop, &requests->timer);
    while (requests->waiting)
        finish_request(take_first_waiting_request(requests), NULL);
}

void redis_requests_free(struct redis_requests *requests)
{
    redis_requests_cancel(requests);
    buffer_free(&requests->scratch);
}
