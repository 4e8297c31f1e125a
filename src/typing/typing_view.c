#include "typing/typing_view.h"

#include "base/container.h"
#include "base/list.h"
#include "presence/visibility/visibility.h"
#include "routing/chat_topic.h"

#include <stdlib.h>
#include <string.h>

struct typing_view {
    struct table_node node;
    struct typing_views *rooms;
    struct list typers; /* those that are due in the order they became so, the others anywhere */
    struct wheel_timer timer;
    int64_t tick_ends_ms;
    uint8_t pushes; /* in this tick */
    uint8_t typer_count;
    uint8_t chat_id_len;
    char chat_id[];
};

struct typer {
    struct list of_room;
    struct typing_view *room;
    struct visibility *sight; /* NULL until it was read */
    struct visibility_reading *reading;
    int64_t visibility_read_ms;
    int64_t ends_at_ms;
    int64_t since_wall_ms; /* of the change that is due */
    bool typing;
    bool shown; /* what those who may see were told */
    uint8_t user_id_len;
    char user_id[];
};

static struct slice chat_of(const struct typing_view *room)
{
    return (struct slice){room->chat_id, room->chat_id_len};
}

static struct slice user_of(const struct typer *typer)
{
    return (struct slice){typer->user_id, typer->user_id_len};
}

static bool is_due(const struct typer *typer)
{
    return typer->typing != typer->shown && typer->sight;
}

/* ---- rooms and those who type in them ---- */

static bool room_matches(const struct table_node *node, struct slice key)
{
    return slice_equal(chat_of(CONTAINER_OF(node, struct typing_view, node)), key);
}

bool typing_views_init(struct typing_views *rooms, uint64_t seed)
{
    return table_init(&rooms->rooms, seed, room_matches);
}

static struct typing_view *find_room(const struct typing_views *rooms, struct slice chat_id)
{
    struct table_node *node = table_find(&rooms->rooms, chat_id);
    return node ? CONTAINER_OF(node, struct typing_view, node) : NULL;
}

static void fire(struct wheel_timer *timer);

static struct typing_view *make_room(struct typing_views *rooms, struct slice chat_id)
{
    struct typing_view *room = malloc(sizeof(*room) + chat_id.len);
    if (!room)
        return NULL;
    *room = (struct typing_view){
        .rooms = rooms, .timer.fire = fire, .chat_id_len = (uint8_t)chat_id.len};
    memcpy(room->chat_id, chat_id.data, chat_id.len);
    list_init(&room->typers);
    table_insert(&rooms->rooms, &room->node, chat_id);
    return room;
}

static void free_room_if_empty(struct typing_view *room)
{
    if (room->typer_count)
        return;
    wheel_cancel(room->rooms->wheel, &room->timer);
    table_remove(&room->rooms->rooms, &room->node);
    free(room);
}

static struct typer *find_typer(const struct typing_view *room, struct slice user_id)
{
    for (struct list *at = room->typers.next; at != &room->typers; at = at->next) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_room);
        if (slice_equal(user_of(typer), user_id))
            return typer;
    }
    return NULL;
}

static struct typer *make_typer(struct typing_view *room, struct slice user_id)
{
    struct typer *typer = NULL;
    if (room->typer_count < TYPING_VIEW_SHOWN_MAX)
        typer = malloc(sizeof(*typer) + user_id.len);
    if (!typer)
        return NULL;
    *typer = (struct typer){.room = room, .user_id_len = (uint8_t)user_id.len};
    memcpy(typer->user_id, user_id.data, user_id.len);
    list_append(&room->typers, &typer->of_room);
    room->typer_count++;
    return typer;
}

static void free_typer(struct typer *typer)
{
    list_remove(&typer->of_room);
    typer->room->typer_count--;
    visibility_forget(&typer->reading);
    visibility_free(&typer->sight);
    free(typer);
}

static void free_room(struct table_node *node, void *arg)
{
    (void)arg;
    struct typing_view *room = CONTAINER_OF(node, struct typing_view, node);
    struct list *at = room->typers.next;
    while (at != &room->typers) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_room);
        at = at->next;
        free_typer(typer);
    }
    free_room_if_empty(room);
}

void typing_views_free(struct typing_views *rooms)
{
    table_each(&rooms->rooms, free_room, NULL);
    table_free(&rooms->rooms);
}

/* ---- pushing ---- */

/* Tells everybody who has the chat open, may see the user by `sight`, and may not by `but_not` (which
 * may be NULL: nobody is left out). */
static void tell(const struct typer *typer, bool typing, const struct visibility *sight,
                 const struct visibility *but_not)
{
    const struct typing_view *room = typer->room;
    struct router *router = room->rooms->router;
    struct topic *topic = chat_topic_of(router, chat_of(room), CHAT_TOPIC_TYPING);
    if (!topic)
        return;
    struct message message = {.type = MESSAGE_TYPING_CHANGED,
                              .typing = {chat_of(room), user_of(typer), typing}};
    struct broadcast broadcast = {.message = &message};
    uint64_t key = router_key(router, MESSAGE_TYPING_CHANGED, chat_of(room)) ^
                   router_key(router, MESSAGE_TYPING_START, user_of(typer));
    size_t delivered = 0;
    for (uint32_t i = 0; i < topic->count; i++) {
        struct endpoint *endpoint = topic->subscriptions[i]->endpoint;
        struct slice viewer = route_user(endpoint->route);
        if (topic->subscriptions[i]->view != CHAT_VIEW_OPEN ||
            slice_equal(viewer, user_of(typer)) || !visibility_allows(sight, viewer) ||
            (but_not && visibility_allows(but_not, viewer)))
            continue;
        router->deliver(endpoint, &broadcast, key | 1);
        delivered++;
    }
    broadcast_end(&broadcast);
    metrics_add(room->rooms->metrics, METRIC_TYPING_DELIVERIES, (int64_t)delivered);
}

static bool within_budget(struct typing_view *room)
{
    int64_t now_ms = room->rooms->clock->now_ms;
    if (now_ms >= room->tick_ends_ms) {
        room->tick_ends_ms = now_ms + TYPING_VIEW_TICK_MS;
        room->pushes = 0;
    }
    return room->pushes < TYPING_VIEW_PUSHES_PER_TICK;
}

/* Tells a change that is due; one who stopped is then forgotten. */
static void push(struct typer *typer)
{
    struct typing_views *rooms = typer->room->rooms;
    typer->room->pushes++;
    typer->shown = typer->typing;
    tell(typer, typer->shown, typer->sight, NULL);
    metrics_count(rooms->metrics, METRIC_TYPING_PUSHES);
    metrics_latency(rooms->metrics, LATENCY_TYPING,
                    (rooms->clock->wall_ms - typer->since_wall_ms) * 1000);
    if (!typer->shown)
        free_typer(typer);
}

/* The next moment at which the room has something to do. */
static void schedule(struct typing_view *room)
{
    int64_t at_ms = INT64_MAX;
    for (struct list *at = room->typers.next; at != &room->typers; at = at->next) {
        const struct typer *typer = CONTAINER_OF(at, struct typer, of_room);
        int64_t due_ms = is_due(typer)   ? room->tick_ends_ms
                         : typer->typing ? typer->ends_at_ms
                                         : INT64_MAX;
        at_ms = due_ms < at_ms ? due_ms : at_ms;
    }
    if (at_ms == INT64_MAX)
        wheel_cancel(room->rooms->wheel, &room->timer);
    else
        wheel_set(room->rooms->wheel, &room->timer, at_ms);
}

/* Of one who stopped nobody can be told whose sight could not be read: that would tell strangers. */
static bool is_lost(const struct typer *typer)
{
    return !typer->typing && !typer->sight && !typer->reading;
}

/* Pushes what is due as far as the budget goes, then waits for what comes next. May free the room. */
static void work(struct typing_view *room)
{
    struct list *at = room->typers.next;
    while (at != &room->typers) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_room);
        at = at->next;
        if (is_lost(typer))
            free_typer(typer);
        else if (is_due(typer) && within_budget(room))
            push(typer);
    }
    if (room->typer_count)
        schedule(room);
    free_room_if_empty(room);
}

/* ---- changes ---- */

/* Into the line of those that are due. One who stopped and was never shown is forgotten. */
static void set_typing(struct typer *typer, bool typing, int64_t since_wall_ms)
{
    if (typer->typing == typing)
        return;
    typer->typing = typing;
    typer->since_wall_ms = since_wall_ms;
    if (!typing && !typer->shown) {
        metrics_count(typer->room->rooms->metrics, METRIC_TYPING_COALESCED);
        free_typer(typer);
        return;
    }
    list_remove(&typer->of_room);
    list_append(&typer->room->typers, &typer->of_room);
}

static void fire(struct wheel_timer *timer)
{
    struct typing_view *room = CONTAINER_OF(timer, struct typing_view, timer);
    const struct clock *clock = room->rooms->clock;
    struct list *at = room->typers.next;
    for (uint8_t left = room->typer_count; left; left--) {
        struct typer *typer = CONTAINER_OF(at, struct typer, of_room);
        at = at->next;
        if (typer->typing && typer->ends_at_ms <= clock->now_ms)
            set_typing(typer, false, clock->wall_ms);
    }
    work(room);
}

/* What was shown stays shown to those who may see it under both sights; the others hear the difference.
 * Without a sight nobody may see. */
static void seen(void *arg, struct visibility *sight)
{
    struct typer *typer = arg;
    struct visibility *previous = typer->sight;
    typer->sight = sight;
    typer->visibility_read_ms = typer->room->rooms->clock->now_ms;
    if (previous && typer->shown && !(sight && visibility_equal(previous, sight))) {
        tell(typer, false, previous, sight);
        if (sight)
            tell(typer, true, sight, previous);
        typer->shown = sight != NULL;
    }
    visibility_free(&previous);
    work(typer->room);
}

/* May run to its end at once, and with it the room's work. */
static void read_sight(struct typer *typer)
{
    visibility_forget(&typer->reading);
    visibility_read(typer->room->rooms->presence, user_of(typer), &typer->reading, seen, typer);
}

static void read_sight_if_old(struct typer *typer)
{
    int64_t now_ms = typer->room->rooms->clock->now_ms;
    bool old = !typer->sight || now_ms - typer->visibility_read_ms >= TYPING_VIEW_SIGHT_MS;
    if (old && !typer->reading)
        read_sight(typer);
}

/* The one who types, entered if there is room; NULL: not followed here. */
static struct typer *follow(struct typing_views *rooms, struct slice chat_id, struct slice user_id)
{
    struct typing_view *room = find_room(rooms, chat_id);
    if (!room && !chat_topic_of(rooms->router, chat_id, CHAT_TOPIC_TYPING))
        return NULL;
    if (!room)
        room = make_room(rooms, chat_id);
    if (!room)
        return NULL;
    struct typer *typer = find_typer(room, user_id);
    if (!typer)
        typer = make_typer(room, user_id);
    if (!typer)
        free_room_if_empty(room);
    return typer;
}

void typing_view_heard(struct typing_views *rooms, struct slice chat_id, struct slice user_id,
                       bool typing, int64_t since_wall_ms)
{
    struct typing_view *room = find_room(rooms, chat_id);
    struct typer *typer = typing ? follow(rooms, chat_id, user_id)
                          : room ? find_typer(room, user_id)
                                 : NULL;
    if (!typer)
        return;
    room = typer->room;
    typer->ends_at_ms = rooms->clock->now_ms + rooms->ttl_ms;
    set_typing(typer, typing, since_wall_ms);
    if (typing)
        read_sight_if_old(typer); /* one who types is not freed by it, nor is the room */
    work(room);
}

bool typing_view_known(struct typing_views *rooms, struct slice chat_id, struct slice user_id,
                       int64_t left_ms)
{
    struct typer *typer = follow(rooms, chat_id, user_id);
    if (!typer)
        return false;
    int64_t ends_at_ms = rooms->clock->now_ms + left_ms;
    if (typer->ends_at_ms < ends_at_ms)
        typer->ends_at_ms = ends_at_ms;
    if (!typer->typing)
        typer->typing = typer->shown = true;
    read_sight_if_old(typer);
    schedule(typer->room);
    return true;
}

void typing_view_abandon(struct typing_views *rooms, struct slice chat_id)
{
    struct typing_view *room = find_room(rooms, chat_id);
    if (room)
        free_room(&room->node, NULL);
}

void typing_view_review(struct typing_views *rooms, struct slice chat_id, struct slice user_id)
{
    struct typing_view *room = find_room(rooms, chat_id);
    struct typer *typer = room ? find_typer(room, user_id) : NULL;
    if (typer)
        read_sight(typer);
}
