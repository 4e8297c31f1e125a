#include "typing/typing_view.h"

#include "base/container.h"
#include "base/list.h"
#include "presence/visibility/visibility.h"
#include "routing/chat_topic.h"

#include <stdlib.h>
#include <string.h>

struct typing_view {
    struct table_node node;
    struct typing_views *views;
    struct list typers; /* the changed ones in the order of their changes, the others anywhere */
    struct wheel_timer timer;
    int64_t period_ends_ms;
    uint8_t pushes; /* in this period */
    uint8_t typer_count;
    uint8_t chat_id_len;
    char chat_id[];
};

struct typer {
    struct list of_view;
    struct typing_view *view;
    struct visibility *visibility; /* NULL until it was read */
    struct visibility_reading *reading;
    int64_t visibility_read_ms;
    int64_t ends_at_ms;
    int64_t since_wall_ms; /* of the last change */
    bool typing;
    bool shown; /* what the viewers who may see it were told */
    uint8_t user_id_len;
    char user_id[];
};

static struct slice typing_view_chat(const struct typing_view *view)
{
    return (struct slice){view->chat_id, view->chat_id_len};
}

static struct slice typer_user(const struct typer *typer)
{
    return (struct slice){typer->user_id, typer->user_id_len};
}

/* Returns whether a change waits to be sent. Without a visibility nobody may be told. */
static bool typer_has_unsent_change(const struct typer *typer)
{
    return typer->typing != typer->shown && typer->visibility;
}

/* ---- views and their typers ---- */

static bool typing_view_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(typing_view_chat(CONTAINER_OF(node, struct typing_view, node)), key);
}

bool typing_views_init(struct typing_views *views, uint64_t seed)
{
    return table_init(&views->by_chat, seed, typing_view_matches);
}

static struct typing_view *typing_view_find(const struct typing_views *views, struct slice chat_id)
{
    struct table_node *node = table_find(&views->by_chat, chat_id);
    return node ? CONTAINER_OF(node, struct typing_view, node) : NULL;
}

static void on_typing_view_timer(struct wheel_timer *timer);

static struct typing_view *typing_view_make(struct typing_views *views, struct slice chat_id)
{
    struct typing_view *view = malloc(sizeof(*view) + chat_id.len);
    if (!view)
        return NULL;
    *view = (struct typing_view){
        .views = views, .timer.fire = on_typing_view_timer, .chat_id_len = (uint8_t)chat_id.len};
    memcpy(view->chat_id, chat_id.data, chat_id.len);
    list_init(&view->typers);
    table_insert(&views->by_chat, &view->node, chat_id);
    return view;
}

static void typing_view_free_if_empty(struct typing_view *view)
{
    if (view->typer_count)
        return;
    wheel_cancel(view->views->wheel, &view->timer);
    table_remove(&view->views->by_chat, &view->node);
    free(view);
}

static struct typer *typer_find(const struct typing_view *view, struct slice user_id)
{
    for (struct list *at = view->typers.next; at != &view->typers; at = at->next) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_view);
        if (slice_equal(typer_user(typer), user_id))
            return typer;
    }
    return NULL;
}

/* Returns NULL when the view follows too many, or when out of memory. */
static struct typer *typer_make(struct typing_view *view, struct slice user_id)
{
    struct typer *typer = NULL;
    if (view->typer_count < TYPING_VIEW_SHOWN_MAX)
        typer = malloc(sizeof(*typer) + user_id.len);
    if (!typer)
        return NULL;
    *typer = (struct typer){.view = view, .user_id_len = (uint8_t)user_id.len};
    memcpy(typer->user_id, user_id.data, user_id.len);
    list_append(&view->typers, &typer->of_view);
    view->typer_count++;
    return typer;
}

static void typer_free(struct typer *typer)
{
    list_remove(&typer->of_view);
    typer->view->typer_count--;
    visibility_cancel(&typer->reading);
    visibility_free(&typer->visibility);
    free(typer);
}

static void typing_view_free(struct table_node *node, void *arg)
{
    (void)arg;
    struct typing_view *view = CONTAINER_OF(node, struct typing_view, node);
    struct list *at = view->typers.next;
    while (at != &view->typers) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_view);
        at = at->next;
        typer_free(typer);
    }
    typing_view_free_if_empty(view);
}

void typing_views_free(struct typing_views *views)
{
    table_each(&views->by_chat, typing_view_free, NULL);
    table_free(&views->by_chat);
}

/* ---- sending to viewers ---- */

/* Sends to everybody who has the chat open, may see the user according to `visibility`, and may not according
 * to `except` (NULL: no exception). */
static void typer_send(const struct typer *typer, bool typing, const struct visibility *visibility,
                       const struct visibility *except)
{
    const struct typing_view *view = typer->view;
    struct slice chat_id = typing_view_chat(view);
    struct router *router = view->views->router;
    struct topic *topic = chat_topic_of(router, chat_id, CHAT_TOPIC_TYPING);
    if (!topic)
        return;
    struct message message = {.type = MESSAGE_TYPING_CHANGED,
                              .typing = {chat_id, typer_user(typer), typing}};
    struct broadcast broadcast = {.message = &message};
    uint64_t key = router_key(router, MESSAGE_TYPING_CHANGED, chat_id) ^
                   router_key(router, MESSAGE_TYPING_START, typer_user(typer));
    size_t delivered = 0;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct endpoint *endpoint = topic->subscriptions[i]->endpoint;
        struct slice viewer = route_user(endpoint->route);
        if (topic->subscriptions[i]->view != CHAT_VIEW_OPEN ||
            slice_equal(viewer, typer_user(typer)) || !visibility_allows(visibility, viewer) ||
            (except && visibility_allows(except, viewer)))
            continue;
        router->deliver(endpoint, &broadcast, key | 1);
        delivered++;
    }
    broadcast_end(&broadcast);
    metrics_add(view->views->metrics, METRIC_TYPING_DELIVERIES, (int64_t)delivered);
}

static bool typing_view_has_budget(struct typing_view *view)
{
    int64_t now_ms = view->views->clock->now_ms;
    if (now_ms >= view->period_ends_ms) {
        view->period_ends_ms = now_ms + TYPING_VIEW_PERIOD_MS;
        view->pushes = 0;
    }
    return view->pushes < TYPING_VIEW_PUSHES_PER_PERIOD;
}

/* Sends a change to the viewers; a typer who stopped is then freed. */
static void typer_push(struct typer *typer)
{
    struct typing_views *views = typer->view->views;
    typer->view->pushes++;
    typer->shown = typer->typing;
    typer_send(typer, typer->shown, typer->visibility, NULL);
    metrics_count(views->metrics, METRIC_TYPING_PUSHES);
    metrics_latency(views->metrics, LATENCY_TYPING,
                    (views->clock->wall_ms - typer->since_wall_ms) * 1000);
    if (!typer->shown)
        typer_free(typer);
}

/* Sets the timer to the next moment at which the view has something to do. */
static void typing_view_schedule(struct typing_view *view)
{
    int64_t at_ms = INT64_MAX;
    for (struct list *at = view->typers.next; at != &view->typers; at = at->next) {
        const struct typer *typer = CONTAINER_OF(at, struct typer, of_view);
        int64_t next_ms = typer_has_unsent_change(typer) ? view->period_ends_ms
                          : typer->typing                ? typer->ends_at_ms
                                                         : INT64_MAX;
        at_ms = next_ms < at_ms ? next_ms : at_ms;
    }
    if (at_ms == INT64_MAX)
        wheel_cancel(view->views->wheel, &view->timer);
    else
        wheel_set(view->views->wheel, &view->timer, at_ms);
}

/* Sends changes as far as the budget goes, then sets the timer. May free the view. */
static void typing_view_run(struct typing_view *view)
{
    struct list *at = view->typers.next;
    while (at != &view->typers) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_view);
        at = at->next;
        /* Without a visibility nobody may be told, not even that the typing stopped. */
        if (!typer->typing && !typer->visibility && !typer->reading)
            typer_free(typer);
        else if (typer_has_unsent_change(typer) && typing_view_has_budget(view))
            typer_push(typer);
    }
    if (view->typer_count)
        typing_view_schedule(view);
    typing_view_free_if_empty(view);
}

/* ---- changes ---- */

/* Appends a changed typer to the list. A typer who stopped and was never shown is freed. */
static void typer_set_typing(struct typer *typer, bool typing, int64_t since_wall_ms)
{
    if (typer->typing == typing)
        return;
    typer->typing = typing;
    typer->since_wall_ms = since_wall_ms;
    if (!typing && !typer->shown) {
        metrics_count(typer->view->views->metrics, METRIC_TYPING_COALESCED);
        typer_free(typer);
        return;
    }
    list_remove(&typer->of_view);
    list_append(&typer->view->typers, &typer->of_view);
}

static void on_typing_view_timer(struct wheel_timer *timer)
{
    struct typing_view *view = CONTAINER_OF(timer, struct typing_view, timer);
    const struct clock *clock = view->views->clock;
    struct list *at = view->typers.next;
    for (uint8_t left = view->typer_count; left; left--) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_view);
        at = at->next;
        if (typer->typing && typer->ends_at_ms <= clock->now_ms)
            typer_set_typing(typer, false, clock->wall_ms);
    }
    typing_view_run(view);
}

/* Viewers who may see the typer before and after keep what they were shown; the others are told the
 * difference. NULL: nobody may see. */
static void on_typer_visibility_read(void *arg, struct visibility *visibility)
{
    struct typer *typer = arg;
    struct visibility *previous = typer->visibility;
    typer->visibility = visibility;
    typer->visibility_read_ms = typer->view->views->clock->now_ms;
    if (previous && typer->shown && !(visibility && visibility_equal(previous, visibility))) {
        typer_send(typer, false, previous, visibility);
        if (visibility)
            typer_send(typer, true, visibility, previous);
        typer->shown = visibility != NULL;
    }
    visibility_free(&previous);
    typing_view_run(typer->view);
}

/* The completion may run at once, and with it typing_view_run(). */
static void typer_read_visibility(struct typer *typer)
{
    visibility_cancel(&typer->reading);
    visibility_read(typer->view->views->presence, typer_user(typer), &typer->reading,
                    on_typer_visibility_read, typer);
}

static void typer_read_visibility_if_old(struct typer *typer)
{
    int64_t now_ms = typer->view->views->clock->now_ms;
    bool old =
        !typer->visibility || now_ms - typer->visibility_read_ms >= TYPING_VIEW_VISIBILITY_MS;
    if (old && !typer->reading)
        typer_read_visibility(typer);
}

/* Returns the typer, who is followed from now on; NULL: nobody here has the chat open, or no capacity. */
static struct typer *typing_view_enter(struct typing_views *views, struct slice chat_id,
                                       struct slice user_id)
{
    struct typing_view *view = typing_view_find(views, chat_id);
    if (!view && !chat_topic_of(views->router, chat_id, CHAT_TOPIC_TYPING))
        return NULL;
    if (!view)
        view = typing_view_make(views, chat_id);
    if (!view)
        return NULL;
    struct typer *typer = typer_find(view, user_id);
    if (!typer)
        typer = typer_make(view, user_id);
    if (!typer)
        typing_view_free_if_empty(view);
    return typer;
}

void typing_view_update(struct typing_views *views, struct slice chat_id, struct slice user_id,
                        bool typing, int64_t since_wall_ms)
{
    struct typing_view *view = typing_view_find(views, chat_id);
    struct typer *typer = typing ? typing_view_enter(views, chat_id, user_id)
                          : view ? typer_find(view, user_id)
                                 : NULL;
    if (!typer)
        return;
    view = typer->view;
    typer->ends_at_ms = views->clock->now_ms + views->ttl_ms;
    typer_set_typing(typer, typing, since_wall_ms);
    if (typing)
        typer_read_visibility_if_old(typer); /* does not free a user who types, nor the view */
    typing_view_run(view);
}

bool typing_view_follow(struct typing_views *views, struct slice chat_id, struct slice user_id,
                        int64_t left_ms)
{
    struct typer *typer = typing_view_enter(views, chat_id, user_id);
    if (!typer)
        return false;
    int64_t ends_at_ms = views->clock->now_ms + left_ms;
    if (typer->ends_at_ms < ends_at_ms)
        typer->ends_at_ms = ends_at_ms;
    if (!typer->typing)
        typer->typing = typer->shown = true;
    typer_read_visibility_if_old(typer);
    typing_view_schedule(typer->view);
    return true;
}

void typing_view_close(struct typing_views *views, struct slice chat_id)
{
    struct typing_view *view = typing_view_find(views, chat_id);
    if (view)
        typing_view_free(&view->node, NULL);
}

void typing_view_recheck(struct typing_views *views, struct slice chat_id, struct slice user_id)
{
    struct typing_view *view = typing_view_find(views, chat_id);
    struct typer *typer = view ? typer_find(view, user_id) : NULL;
    if (typer)
        typer_read_visibility(typer);
}
