#include "app/memory_pressure.h"

#include "base/container.h"
#include "log/log.h"
#include "metrics/process.h"
#include "session/session.h"

#include <malloc.h>

struct shedding {
    struct session_context *sessions;
    size_t left;
    bool only_queued; /* the first pass takes only connections with queued bytes */
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
        if (shedding->only_queued && session->connection.outbound.bytes == 0)
            continue;
        shedding->left--;
        connection_end(&session->connection, CLOSING_MEMORY_PRESSURE,
                       (int64_t)random_below(shedding->sessions->random, MEMORY_RECONNECT_MS));
        if (last) /* the route may be gone with its last endpoint */
            return;
    }
}

void memory_pressure_check(struct api_context *context)
{
    struct session_context *sessions = context->sessions;
    size_t limit = sessions->config->gateway.memory_limit_bytes;
    if (limit == 0)
        return;
    int64_t known = process_resident_bytes();
    size_t resident = known > 0 ? (size_t)known : 0;
    if (resident < limit / 10 * 9)
        context->shedding = false;
    if (resident <= limit)
        return;
    log_warn("memory_pressure", "resident_bytes=%zu limit_bytes=%zu", resident, limit);
    context->shedding = true;
    size_t count = sessions->session_count / MEMORY_SHED_SHARE + 1;
    struct shedding shedding = {.sessions = sessions,
                                .left = count < MEMORY_SHED_MAX ? count : MEMORY_SHED_MAX,
                                .only_queued = true};
    table_each(&sessions->router->routes, shed_route_connections, &shedding);
    shedding.only_queued = false;
    table_each(&sessions->router->routes, shed_route_connections, &shedding);
    malloc_trim(0);
}
