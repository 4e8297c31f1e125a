#include "routing/everyone.h"

#include "base/container.h"

#include <stdlib.h>
#include <string.h>

/* An event on its way through the routes. Name and fields follow the struct in its allocation. */
struct everyone_event {
    struct list of_everyone;
    struct everyone *everyone;
    struct message message;
    struct broadcast broadcast;
    struct id_list except; /* sorted, owned */
    uint64_t cursor;       /* in the table of routes */
    size_t visited;        /* in this step */
};

static void send_everyone_event(struct table_node *node, void *arg)
{
    struct everyone_event *event = arg;
    struct slice user = route_user(CONTAINER_OF(node, struct route, node));
    event->visited++;
    if (event->except.count && id_list_sorted_contains(&event->except, user))
        return;
    size_t delivered =
        router_broadcast_to_user(event->everyone->router, user, &event->broadcast, NULL);
    metrics_add(event->everyone->metrics, METRIC_FANOUT_DELIVERED, (int64_t)delivered);
}

static void end_everyone_event(struct everyone_event *event)
{
    list_remove(&event->of_everyone);
    event->everyone->pending_count--;
    broadcast_end(&event->broadcast);
    id_list_free(&event->except);
    free(event);
}

/* Sends to about `users_max` more users. The event ends with the last user. */
static void step_everyone_event(struct everyone_event *event, size_t users_max)
{
    struct table *routes = &event->everyone->router->routes;
    size_t buckets = 0;
    bool has_more = true;
    event->visited = 0;
    while (has_more && event->visited < users_max && buckets++ < users_max)
        has_more = table_scan(routes, &event->cursor, send_everyone_event, event);
    if (!has_more)
        end_everyone_event(event);
}

static struct everyone_event *first_everyone_event(const struct everyone *everyone)
{
    return CONTAINER_OF(everyone->pending.next, struct everyone_event, of_everyone);
}

static void schedule_everyone_step(struct everyone *everyone)
{
    if (!list_empty(&everyone->pending) && !wheel_is_set(&everyone->step))
        wheel_set(everyone->wheel, &everyone->step, everyone->clock->now_ms + EVERYONE_STEP_MS);
}

static void on_everyone_step_due(struct wheel_timer *timer)
{
    struct everyone *everyone = CONTAINER_OF(timer, struct everyone, step);
    step_everyone_event(first_everyone_event(everyone), EVERYONE_USERS_PER_STEP);
    schedule_everyone_step(everyone);
}

void everyone_init(struct everyone *everyone, struct router *router, struct wheel *wheel,
                   const struct clock *clock, struct metrics *metrics)
{
    *everyone = (struct everyone){.router = router,
                                  .wheel = wheel,
                                  .clock = clock,
                                  .metrics = metrics,
                                  .step.fire = on_everyone_step_due};
    list_init(&everyone->pending);
}

void everyone_free(struct everyone *everyone)
{
    if (wheel_is_set(&everyone->step))
        wheel_cancel(everyone->wheel, &everyone->step);
    struct list *at = everyone->pending.next;
    while (at != &everyone->pending) {
        struct list *next = at->next;
        end_everyone_event(CONTAINER_OF(at, struct everyone_event, of_everyone));
        at = next;
    }
}

void everyone_begin(struct everyone *everyone, struct slice name, struct slice fields,
                    uint64_t event_id, const struct id_list *except)
{
    struct everyone_event *event = malloc(sizeof(*event) + name.len + fields.len);
    struct id_list excepted = {0};
    if (!event || (except && !id_list_copy(&excepted, except->ids, except->count))) {
        free(event);
        return;
    }
    char *text = (char *)(event + 1);
    memcpy(text, name.data, name.len);
    memcpy(text + name.len, fields.data, fields.len);
    *event = (struct everyone_event){
        .everyone = everyone,
        .message = {.type = MESSAGE_RELAY,
                    .relay = {.name = {text, name.len},
                              .fields = {text + name.len, fields.len},
                              .event_id = event_id}},
        .broadcast.message = &event->message,
        .except = excepted,
    };
    list_append(&everyone->pending, &event->of_everyone);
    if (++everyone->pending_count > EVERYONE_PENDING_MAX)
        step_everyone_event(first_everyone_event(everyone), SIZE_MAX);
    schedule_everyone_step(everyone);
}
