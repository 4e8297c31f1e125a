#include "app/gateway/memory_pressure.h"

#include "base/container.h"
#include "http/http_connection.h"
#include "log/log.h"
#include "metrics/process.h"
#include "session/session.h"

#include <malloc.h>

enum { CHECK_STEP_MIN = 1 << 20, LARGER_BY_FAR = 2 };

/* ---- holders ---- */

struct holder {
    struct session *session;
    size_t bytes;
};

/* The largest holders among the sessions, in falling order. */
struct holders {
    size_t count;
    struct holder items[MEMORY_HOLDERS_MAX];
};

static void add_holder(struct holders *holders, struct session *session, size_t bytes)
{
    size_t at = holders->count;
    if (at == MEMORY_HOLDERS_MAX && holders->items[at - 1].bytes >= bytes)
        return;
    if (at == MEMORY_HOLDERS_MAX)
        at--;
    else
        holders->count++;
    for (; at > 0 && holders->items[at - 1].bytes < bytes; at--)
        holders->items[at] = holders->items[at - 1];
    holders->items[at] = (struct holder){session, bytes};
}

static void add_holders_of_route(struct table_node *node, void *arg)
{
    struct route *route = CONTAINER_OF(node, struct route, node);
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct session *session = session_on_route(at);
        size_t bytes = outbound_bytes(&session->connection.outbound) +
                       websocket_decoder_memory_bytes(&session->connection.decoder);
        if (bytes)
            add_holder(arg, session, bytes);
    }
}

static int64_t random_reconnect_ms(struct session_context *sessions)
{
    return (int64_t)random_below(sessions->random, MEMORY_RECONNECT_MS);
}

/* Closes the largest holders until `excess` bytes are free. Returns how many sessions it closed; *freed is set. */
static size_t shed_holders(struct api_context *context, struct holders *holders, size_t excess,
                           size_t *freed)
{
    size_t next = 0, bytes;
    for (*freed = 0; *freed < excess; *freed += bytes) {
        struct http_connection *body = http_listener_largest_body(&context->listener, &bytes);
        if (body && (next == holders->count || bytes > holders->items[next].bytes)) {
            http_connection_shed(body);
        } else if (next < holders->count) {
            bytes = holders->items[next].bytes;
            connection_shed(&holders->items[next++].session->connection,
                            random_reconnect_ms(context->sessions));
        } else {
            break;
        }
    }
    return next;
}

/* ---- connections that hold nothing ---- */

struct shedding {
    struct session_context *sessions;
    size_t left;
};

static void shed_route_connections(struct table_node *node, void *arg)
{
    struct shedding *shedding = arg;
    struct route *route = CONTAINER_OF(node, struct route, node);
    struct list *at = route->endpoints.next;
    while (at != &route->endpoints && shedding->left) {
        struct session *session = session_on_route(at);
        bool last = at->next == &route->endpoints;
        at = at->next;
        shedding->left--;
        connection_end(&session->connection, CLOSING_MEMORY_PRESSURE,
                       random_reconnect_ms(shedding->sessions));
        if (last) /* the route may be gone with its last endpoint */
            return;
    }
}

static void shed_some(struct session_context *sessions, size_t already)
{
    size_t count = sessions->session_count / MEMORY_SHED_SHARE + 1;
    if (count > MEMORY_SHED_MAX)
        count = MEMORY_SHED_MAX;
    struct shedding shedding = {.sessions = sessions,
                                .left = count > already ? count - already : 0};
    table_each(&sessions->router->routes, shed_route_connections, &shedding);
}

/* ---- the budget ---- */

/* Returns what all workers hold. */
static int64_t publish_held(struct memory_pressure *pressure, const struct memory_account *account)
{
    int64_t difference = account->total - pressure->published;
    if (!pressure->budget)
        return account->total;
    pressure->published = account->total;
    return atomic_fetch_add(&pressure->budget->held, difference) + difference;
}

/* Whether another worker has a much larger holder, which is to give way first. */
static bool is_others_turn(struct memory_pressure *pressure, size_t own_largest)
{
    if (!pressure->budget)
        return false;
    atomic_store(&pressure->budget->largest[pressure->worker], (int64_t)own_largest);
    for (size_t i = 0; i < pressure->workers; i++)
        if (i != pressure->worker &&
            atomic_load(&pressure->budget->largest[i]) > LARGER_BY_FAR * (int64_t)own_largest)
            return true;
    return false;
}

static void relieve_memory(struct memory_pressure *pressure, struct api_context *context,
                           size_t excess)
{
    struct session_context *sessions = context->sessions;
    struct holders holders = {0};
    size_t largest, freed;
    size_t parked = pressure->recovery ? recovery_shed(pressure->recovery, excess) : 0;
    if (parked >= excess) {
        malloc_trim(0);
        return;
    }
    excess -= parked;
    table_each(&sessions->router->routes, add_holders_of_route, &holders);
    http_listener_largest_body(&context->listener, &largest);
    if (holders.count && holders.items[0].bytes > largest)
        largest = holders.items[0].bytes;
    if (is_others_turn(pressure, largest))
        return;
    size_t closed = shed_holders(context, &holders, excess, &freed);
    if (freed < excess)
        shed_some(sessions, closed);
    malloc_trim(0);
}

static void show_held_bytes(struct metrics *metrics, const struct memory_account *account)
{
    metrics_set(metrics, METRIC_HELD_QUEUE_BYTES, account->bytes[MEMORY_QUEUES]);
    metrics_set(metrics, METRIC_HELD_MESSAGE_BYTES, account->bytes[MEMORY_MESSAGES]);
    metrics_set(metrics, METRIC_HELD_BODY_BYTES, account->bytes[MEMORY_BODIES]);
}

void memory_pressure_check(struct memory_pressure *pressure, struct api_context *context)
{
    struct session_context *sessions = context->sessions;
    struct memory_account *account = &sessions->connections.memory;
    size_t limit = sessions->config->gateway.memory_limit_bytes;
    show_held_bytes(sessions->metrics, account);
    if (pressure->worker == 0) /* all workers share the parked sessions */
        metrics_set(sessions->metrics, METRIC_HELD_PARKED_BYTES,
                    pressure->recovery ? (int64_t)recovery_held_bytes(pressure->recovery) : 0);
    account->check_above = INT64_MAX;
    if (limit == 0)
        return;
    int64_t parked = pressure->recovery ? (int64_t)recovery_held_bytes(pressure->recovery) : 0;
    int64_t resident = process_resident_bytes(), held = publish_held(pressure, account) + parked;
    size_t used = (size_t)(resident > held ? resident : held);
    size_t step = used < limit ? (limit - used) / 2 : 0;
    account->check_above =
        account->total + (int64_t)(step > CHECK_STEP_MIN ? step : CHECK_STEP_MIN);
    if (pressure->budget && used <= limit)
        atomic_store(&pressure->budget->largest[pressure->worker], 0);
    if (used < limit / 10 * 9)
        context->shedding = false;
    if (used <= limit)
        return;
    log_warn("memory_pressure", "resident_bytes=%lld held_bytes=%lld limit_bytes=%zu",
             (long long)resident, (long long)held, limit);
    context->shedding = true;
    relieve_memory(pressure, context, used - limit / 10 * 9);
}
