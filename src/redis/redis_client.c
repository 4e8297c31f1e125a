#include "redis/redis_client.h"

#include "base/container.h"
#include "log/log.h"
#include "net/tls.h"
#include "redis/redis_cluster.h"
#include "redis/redis_request.h"

#include <stdio.h>
#include <stdlib.h>

struct redis_client {
    struct redis_cluster cluster;
    struct redis_requests requests;
    struct redis_url url;
    char name[REDIS_NAME_MAX + 1];
    struct list observers;
    struct metrics *metrics;
    bool available; /* as last reported to the observers */
    bool closing;
};

/* ---- observers ---- */

static void show_client_availability(struct redis_client *client)
{
    metrics_set(client->metrics, METRIC_REDIS_AVAILABLE, client->available);
    metrics_set(client->metrics, METRIC_GATEWAY_REDIS_AVAILABLE, client->available);
}

static void report_client_availability(struct redis_client *client)
{
    enum redis_problem problem = redis_client_problem(client);
    client->available = client->cluster.available;
    show_client_availability(client);
    if (client->url.cluster && client->available)
        log_info("redis_cluster_available", "servers=%zu", client->cluster.node_count);
    else if (client->url.cluster)
        log_warn("redis_cluster_unavailable", "problem=%s because=\"%s\"",
                 redis_problem_name(problem), redis_problem_text(problem));
    for (struct list *at = client->observers.next, *next; at != &client->observers; at = next) {
        struct redis_observer *observer = CONTAINER_OF(at, struct redis_observer, place);
        next = at->next;
        if (observer->on_availability_changed)
            observer->on_availability_changed(observer, client->available);
    }
}

/* Observers check all their keys, so report moved slots only when some have moved. */
static void on_client_cluster_changed(struct redis_cluster *cluster)
{
    struct redis_client *client = CONTAINER_OF(cluster, struct redis_client, cluster);
    if (client->closing)
        return;
    if (cluster->available != client->available)
        report_client_availability(client);
    if (!cluster->moved)
        return;
    cluster->moved = false;
    for (struct list *at = client->observers.next, *next; at != &client->observers; at = next) {
        struct redis_observer *observer = CONTAINER_OF(at, struct redis_observer, place);
        next = at->next;
        if (observer->on_slots_moved)
            observer->on_slots_moved(observer);
    }
}

static void on_client_server_returned(struct redis_cluster *cluster)
{
    struct redis_client *client = CONTAINER_OF(cluster, struct redis_client, cluster);
    for (struct list *at = client->observers.next, *next; at != &client->observers; at = next) {
        struct redis_observer *observer = CONTAINER_OF(at, struct redis_observer, place);
        next = at->next;
        if (observer->on_server_returned && !client->closing)
            observer->on_server_returned(observer);
    }
}

static void tell_observers_of_invalidation(struct redis_client *client, struct slice key)
{
    for (struct list *at = client->observers.next, *next; at != &client->observers; at = next) {
        struct redis_observer *observer = CONTAINER_OF(at, struct redis_observer, place);
        next = at->next;
        if (observer->on_invalidated)
            observer->on_invalidated(observer, key);
    }
}

static void on_client_keys_invalidated(struct redis_cluster *cluster, const struct resp_value *keys)
{
    struct redis_client *client = CONTAINER_OF(cluster, struct redis_client, cluster);
    if (keys->type != RESP_ARRAY)
        tell_observers_of_invalidation(client, SLICE_NONE);
    for (size_t i = 0; keys->type == RESP_ARRAY && i < keys->count; i++)
        tell_observers_of_invalidation(client, keys->items[i].text);
}

void redis_observe(struct redis_client *client, struct redis_observer *observer)
{
    list_append(&client->observers, &observer->place);
}

void redis_unobserve(struct redis_observer *observer)
{
    list_remove(&observer->place);
}

/* ---- life ---- */

static void release_redis_client(struct redis_client *client)
{
    redis_requests_free(&client->requests);
    tls_context_drop(&client->cluster.context.tls);
    explicit_bzero(&client->url, sizeof(client->url));
    free(client);
}

struct redis_client *redis_client_make(const struct redis_client_options *options)
{
    struct redis_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->url = *options->url;
    client->metrics = options->metrics;
    snprintf(client->name, sizeof(client->name), "%s", options->name ? options->name : "");
    list_init(&client->observers);
    client->cluster.url = &client->url;
    client->cluster.on_changed = on_client_cluster_changed;
    client->cluster.on_server_returned = on_client_server_returned;
    client->cluster.on_invalidated = on_client_keys_invalidated;
    client->cluster.context = (struct redis_connection_context){
        .loop = options->loop,
        .streams = options->streams,
        .random = options->random,
        .metrics = options->metrics,
        .tls = options->tls ? tls_context_share(options->tls) : NULL,
        .report = options->report,
        .identity = {.user = client->url.user,
                     .password = client->url.password,
                     .name = client->name,
                     .database = client->url.database,
                     .alone = !client->url.cluster},
    };
    redis_requests_init(&client->requests, &client->cluster);
    show_client_availability(client);
    if (redis_cluster_open(&client->cluster))
        return client;
    release_redis_client(client);
    return NULL;
}

void redis_client_close(struct redis_client *client)
{
    client->closing = true;
    redis_cluster_close(&client->cluster);
    redis_requests_cancel(&client->requests);
}

void redis_client_free(struct redis_client **client)
{
    struct redis_client *freed = *client;
    *client = NULL;
    if (!freed)
        return;
    redis_client_close(freed);
    release_redis_client(freed);
}

/* ---- state ---- */

bool redis_available(const struct redis_client *client)
{
    return client->available;
}

enum redis_problem redis_client_problem(const struct redis_client *client)
{
    return redis_cluster_problem(&client->cluster);
}

bool redis_reaches(const struct redis_client *client, struct slice key)
{
    const struct redis_connection *connection =
        redis_cluster_connection(&client->cluster, redis_slot(key));
    return connection && redis_connection_takes(connection);
}

bool redis_is_cluster(const struct redis_client *client)
{
    return client->url.cluster;
}

size_t redis_server_of(const struct redis_client *client, uint16_t slot)
{
    for (size_t i = 0; i < client->cluster.node_count; i++)
        if (client->cluster.nodes[i] == client->cluster.owner[slot])
            return i + 1;
    return 0;
}

struct redis_cluster *redis_client_cluster(struct redis_client *client)
{
    return &client->cluster;
}

/* ---- commands ---- */

/* Sends the scratch buffer to one server, without following redirections. */
static void send_client_command_unredirected(struct redis_client *client,
                                             struct redis_connection *connection,
                                             redis_reply_done done, void *arg)
{
    const struct buffer *scratch = &client->requests.scratch;
    bool sent = connection && !scratch->failed &&
                redis_connection_send(connection, buffer_slice(scratch), done, arg);
    if (!sent && done)
        done(arg, NULL);
}

/* Makes a request of the scratch buffer, which follows redirections. When out of memory, answers NULL and
 * returns NULL. */
static struct redis_request *make_client_request(struct redis_client *client, redis_reply_done done,
                                                 void *arg)
{
    struct redis_request *request = redis_request_make(&client->requests, done, arg);
    if (!request && done)
        done(arg, NULL);
    return request;
}

void redis_command(struct redis_client *client, struct slice key, struct redis_args args,
                   redis_reply_done done, void *arg)
{
    struct buffer *scratch = &client->requests.scratch;
    buffer_clear(scratch);
    resp_write_command(scratch, args.items, args.count);
    if (!client->url.cluster) {
        send_client_command_unredirected(client, redis_cluster_connection(&client->cluster, 0),
                                         done, arg);
        return;
    }
    struct redis_request *request = make_client_request(client, done, arg);
    if (!request)
        return;
    request->any_slot = key.data == NULL;
    request->slot = redis_slot(key);
    redis_request_send(request);
}

void redis_eval(struct redis_client *client, const struct redis_script *script,
                struct redis_args keys, struct redis_args arguments, redis_reply_done done,
                void *arg)
{
    struct buffer *scratch = &client->requests.scratch;
    buffer_clear(scratch);
    redis_script_write_arguments(scratch, keys, arguments);
    struct redis_request *request = make_client_request(client, done, arg);
    if (!request)
        return;
    request->script = script;
    request->argument_count = keys.count + arguments.count;
    request->any_slot = keys.count == 0;
    request->slot = keys.count ? redis_slot(keys.items[0]) : 0;
    redis_request_send(request);
}

void redis_publish(struct redis_client *client, struct slice channel, struct slice message,
                   redis_reply_done done, void *arg)
{
    const struct slice name = client->url.cluster ? SLICE("SPUBLISH") : SLICE("PUBLISH");
    redis_command(client, channel, REDIS_ARGS(name, channel, message), done, arg);
}

/* ---- tracked reads ---- */

uint64_t redis_tracking(const struct redis_client *client, uint16_t slot)
{
    const struct redis_connection *connection = redis_cluster_connection(&client->cluster, slot);
    return connection ? redis_connection_tracking(connection) : 0;
}

bool redis_read_tracked(struct redis_client *client, uint16_t slot, struct redis_args args,
                        redis_reply_done done, void *arg)
{
    struct redis_connection *connection = redis_cluster_connection(&client->cluster, slot);
    struct buffer *scratch = &client->requests.scratch;
    if (!connection || !redis_connection_tracking(connection))
        return false;
    buffer_clear(scratch);
    resp_write_command(scratch, args.items, args.count);
    return !scratch->failed &&
           redis_connection_send_tracked(connection, buffer_slice(scratch), done, arg);
}

bool redis_await(struct redis_client *client, uint16_t slot, struct redis_barrier *barrier)
{
    struct redis_connection *connection = redis_cluster_connection(&client->cluster, slot);
    return connection && redis_connection_await(connection, barrier);
}

bool redis_confirm(struct redis_client *client, uint16_t slot, struct slice key,
                   redis_reply_done done, void *arg)
{
    const struct slice args[] = {SLICE("EXISTS"), key};
    struct redis_connection *connection = redis_cluster_connection(&client->cluster, slot);
    struct buffer *scratch = &client->requests.scratch;
    buffer_clear(scratch);
    resp_write_command(scratch, args, 2);
    return connection && !scratch->failed &&
           redis_connection_send(connection, buffer_slice(scratch), done, arg);
}

/* ---- servers ---- */

size_t redis_master_count(const struct redis_client *client)
{
    size_t count = 0;
    for (size_t i = 0; i < client->cluster.node_count; i++)
        count += client->cluster.nodes[i]->slots > 0;
    return count;
}

void redis_command_on(struct redis_client *client, size_t master, struct redis_args args,
                      redis_reply_done done, void *arg)
{
    struct buffer *scratch = &client->requests.scratch;
    buffer_clear(scratch);
    resp_write_command(scratch, args.items, args.count);
    struct redis_connection *connection = NULL;
    for (size_t i = 0; i < client->cluster.node_count && !connection; i++)
        if (client->cluster.nodes[i]->slots > 0 && master-- == 0)
            connection = client->cluster.nodes[i]->connection;
    send_client_command_unredirected(client, connection, done, arg);
}
