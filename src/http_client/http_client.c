#include "http_client/http_client.h"

#include "base/container.h"
#include "http_client/http_transfer.h"

#include <stdlib.h>

struct http_client {
    struct wheel_timer timer;    /* when libcurl wants to be called */
    struct wheel_timer finished; /* at once: something ended while it was being sent */
    struct loop *loop;
    CURLM *multi;
    struct http_sockets sockets;
    struct list in_flight;
    struct list idle; /* transfers to be used again, the last one first */
    size_t idle_count;
    size_t in_flight_count;
    size_t in_flight_max;
};

/* ---- answers ---- */

static void keep_or_free_transfer(struct http_client *client, struct http_transfer *transfer)
{
    if (!transfer->is_reusable || client->idle_count >= HTTP_CLIENT_IDLE_MAX) {
        http_transfer_free(transfer);
        return;
    }
    http_transfer_clear(transfer);
    list_append(client->idle.next, &transfer->of_client);
    client->idle_count++;
}

static void end_transfer(struct http_client *client, struct http_transfer *transfer,
                         const char *error)
{
    struct http_client_response response = http_transfer_response(transfer, error);
    curl_multi_remove_handle(client->multi, transfer->easy);
    list_remove(&transfer->of_client);
    client->in_flight_count--;
    transfer->done(transfer->arg, &response);
    keep_or_free_transfer(client, transfer);
}

static void end_finished_transfers(struct http_client *client)
{
    CURLMsg *message;
    int left;
    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct http_transfer *transfer = NULL;
        CURLcode result = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
        const char *error = transfer->error[0] ? transfer->error : curl_easy_strerror(result);
        end_transfer(client, transfer,
                     result == CURLE_OK  ? NULL
                     : transfer->refusal ? transfer->refusal
                                         : error);
    }
}

/* ---- events ---- */

static void on_client_socket_ready(void *arg, curl_socket_t fd, int action)
{
    struct http_client *client = arg;
    int running;
    curl_multi_socket_action(client->multi, fd, action, &running);
    end_finished_transfers(client);
}

static void on_client_timer(struct wheel_timer *timer)
{
    struct http_client *client = CONTAINER_OF(timer, struct http_client, timer);
    int running;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    end_finished_transfers(client);
}

static void on_client_finished(struct wheel_timer *timer)
{
    end_finished_transfers(CONTAINER_OF(timer, struct http_client, finished));
}

static int on_socket_watched(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct http_client *client = arg;
    (void)easy, (void)known;
    return http_sockets_watch(&client->sockets, fd, what) ? 0 : -1;
}

static int on_timer_wanted(CURLM *multi, long wait_ms, void *arg)
{
    struct http_client *client = arg;
    (void)multi;
    if (wait_ms < 0)
        loop_cancel_timer(client->loop, &client->timer);
    else
        loop_set_timer(client->loop, &client->timer, client->loop->clock.now_ms + wait_ms);
    return 0;
}

/* ---- life ---- */

struct http_client *http_client_make(struct loop *loop, size_t in_flight_max)
{
    struct http_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->loop = loop;
    client->in_flight_max = in_flight_max;
    client->timer.fire = on_client_timer;
    client->finished.fire = on_client_finished;
    http_sockets_init(&client->sockets, loop, on_client_socket_ready, client);
    list_init(&client->in_flight);
    list_init(&client->idle);
    /* libcurl counts these calls */
    client->multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : NULL;
    if (!client->multi) {
        http_client_free(&client);
        return NULL;
    }
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_watched);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)in_flight_max);
    return client;
}

void http_client_free(struct http_client **client)
{
    struct http_client *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    for (struct list *at = freed->in_flight.next; at != &freed->in_flight;) {
        struct http_transfer *transfer = CONTAINER_OF(at, struct http_transfer, of_client);
        at = at->next;
        end_transfer(freed, transfer, "the client ends");
    }
    while (freed->idle.next != &freed->idle) {
        struct http_transfer *transfer =
            CONTAINER_OF(freed->idle.next, struct http_transfer, of_client);
        list_remove(&transfer->of_client);
        http_transfer_free(transfer);
    }
    curl_multi_cleanup(freed->multi);
    curl_global_cleanup();
    http_sockets_free(&freed->sockets);
    loop_cancel_timer(freed->loop, &freed->timer);
    loop_cancel_timer(freed->loop, &freed->finished);
    free(freed);
}

static struct http_transfer *take_transfer(struct http_client *client,
                                           const struct http_client_request *request)
{
    for (struct list *at = client->idle.next; at != &client->idle; at = at->next) {
        struct http_transfer *transfer = CONTAINER_OF(at, struct http_transfer, of_client);
        if (!http_transfer_fits(transfer, request))
            continue;
        list_remove(&transfer->of_client);
        client->idle_count--;
        return transfer;
    }
    return http_transfer_make(&client->sockets, request);
}

/* The request goes out now rather than when the timer fires; what ends by that is told later. */
static void start_transfer(struct http_client *client)
{
    int running = 0;
    curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    if ((size_t)running < client->in_flight_count)
        loop_set_timer(client->loop, &client->finished, client->loop->clock.now_ms);
}

bool http_client_send(struct http_client *client, const struct http_client_request *request,
                      http_client_done done, void *arg)
{
    if (client->in_flight_count >= client->in_flight_max)
        return false;
    struct http_transfer *transfer = take_transfer(client, request);
    if (!transfer)
        return false;
    transfer->done = done;
    transfer->arg = arg;
    if (!http_transfer_prepare(transfer, request) ||
        curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK) {
        http_transfer_free(transfer);
        return false;
    }
    list_append(&client->in_flight, &transfer->of_client);
    client->in_flight_count++;
    start_transfer(client);
    return true;
}
