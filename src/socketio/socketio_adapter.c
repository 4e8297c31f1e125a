#include "socketio/socketio_adapter.h"

#include "base/container.h"
#include "log/log.h"
#include "session/session.h"
#include "socketio/codec/adapter_packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define USER_ROOM "u:"

enum { ENDS_PER_MS = 50 };

/* A message in the queue; its bytes follow the struct. */
struct adapter_message {
    struct list of_queue;
    bool is_request;
    size_t len;
    char bytes[];
};

/* Users whom rooms name. The ids are owned, one allocation each. */
struct adapter_users {
    struct slice *ids;
    size_t count, capacity;
};

/* The message that is being handled: its rooms are resolved one after the other, those of `except` first. */
struct adapter_work {
    struct socketio_adapter *adapter;
    struct adapter_message *message;
    struct buffer json; /* the packet borrows from it */
    struct adapter_packet packet;
    struct adapter_users users, except;
    size_t resolved; /* rooms of `except`, then those of `rooms` */
    bool is_asking;  /* the ledger about the next one */
    bool failed;
};

static void advance_adapter(struct socketio_adapter *adapter);

/* ---- users ---- */

static bool add_adapter_user(struct adapter_users *users, struct slice id)
{
    if (users->count == SOCKETIO_ADAPTER_USERS_MAX)
        return false;
    if (users->count == users->capacity) {
        size_t capacity = users->capacity ? users->capacity * 2 : 16;
        struct slice *ids = realloc(users->ids, capacity * sizeof(*ids));
        if (!ids)
            return false;
        users->ids = ids;
        users->capacity = capacity;
    }
    char *copy = malloc(id.len ? id.len : 1);
    if (!copy)
        return false;
    memcpy(copy, id.data, id.len);
    users->ids[users->count++] = (struct slice){copy, id.len};
    return true;
}

static void free_adapter_users(struct adapter_users *users)
{
    for (size_t i = 0; i < users->count; i++)
        free((char *)users->ids[i].data);
    free(users->ids);
}

/* Sorts both, and keeps each user once who is not excepted. */
static void settle_adapter_users(struct adapter_work *work)
{
    struct adapter_users *users = &work->users;
    struct id_list except = {work->except.ids, work->except.count};
    size_t kept = 0;
    struct slice previous = SLICE_NONE;
    id_list_sort(&except);
    id_list_sort(&(struct id_list){users->ids, users->count});
    for (size_t i = 0; i < users->count; i++) {
        struct slice id = users->ids[i];
        if ((previous.data && slice_equal(previous, id)) || id_list_sorted_contains(&except, id)) {
            free((char *)id.data);
            continue;
        }
        users->ids[kept++] = previous = id;
    }
    users->count = kept;
}

/* ---- effects ---- */

static void emit_adapter_event(struct adapter_work *work)
{
    const struct socketio_adapter *adapter = work->adapter;
    bool to_everyone = !work->packet.rooms.are_named;
    const struct adapter_users *users = to_everyone ? &work->except : &work->users;
    delivery_receive_local(adapter->receiver, &(struct delivery_local){
                                                  .fields = work->packet.fields,
                                                  .event_id = random_u64(adapter->sessions->random),
                                                  .to_everyone = to_everyone,
                                                  .users = {users->ids, users->count},
                                              });
}

struct adapter_ending {
    const struct adapter_work *work;
    int64_t ended;
};

/* A Socket.IO client is told not to connect again by itself. Each connection's timer ends it, so that many are spread over
 * several turns. */
static void end_adapter_route(struct route *route, struct adapter_ending *ending)
{
    const struct session_context *sessions = ending->work->adapter->sessions;
    for (struct list *at = route->endpoints.next; at != &route->endpoints; at = at->next) {
        struct connection *connection = &session_on_route(at)->connection;
        if (connection->owner->send_disconnect)
            connection->owner->send_disconnect(connection);
        connection_limit(connection, CLOSING_ADMIN,
                         sessions->loop->clock.now_ms + ending->ended++ / ENDS_PER_MS);
    }
}

static void end_adapter_route_of_all(struct table_node *node, void *arg)
{
    struct adapter_ending *ending = arg;
    struct route *route = CONTAINER_OF(node, struct route, node);
    struct id_list except = {ending->work->except.ids, ending->work->except.count};
    if (!id_list_sorted_contains(&except, route_user(route)))
        end_adapter_route(route, ending);
}

static void disconnect_adapter_users(const struct adapter_work *work)
{
    struct router *router = work->adapter->sessions->router;
    struct adapter_ending ending = {.work = work};
    if (!work->packet.rooms.are_named)
        table_each(&router->routes, end_adapter_route_of_all, &ending);
    for (size_t i = 0; i < work->users.count; i++) {
        struct route *route = router_find(router, work->users.ids[i]);
        if (route)
            end_adapter_route(route, &ending);
    }
    log_info("socketio_adapter_disconnect", "connections=%lld", (long long)ending.ended);
}

/* ---- one message ---- */

static void drop_adapter_message(struct socketio_adapter *adapter, const char *problem)
{
    metrics_count(adapter->sessions->metrics, METRIC_SOCKETIO_ADAPTER_DROPPED);
    log_warn("socketio_adapter_dropped", "reason=%s", log_sentence(slice_of(problem)));
}

static void end_adapter_work(struct adapter_work *work)
{
    struct socketio_adapter *adapter = work->adapter;
    adapter->queue_count--;
    adapter->queue_bytes -= work->message->len;
    free_adapter_users(&work->users);
    free_adapter_users(&work->except);
    buffer_free(&work->json);
    free(work->message);
    free(work);
}

static void finish_adapter_work(struct adapter_work *work)
{
    settle_adapter_users(work);
    if (work->failed)
        drop_adapter_message(work->adapter, "its rooms cannot be read");
    else if (work->packet.act == ADAPTER_EMIT)
        emit_adapter_event(work);
    else
        disconnect_adapter_users(work);
    end_adapter_work(work);
}

/* A room that is no chat of ours is a room of the Node servers, and nobody of ours is in it. */
static void on_adapter_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    struct adapter_work *work = arg;
    bool is_except = work->resolved < work->packet.except.count;
    struct adapter_users *users = is_except ? &work->except : &work->users;
    work->resolved++;
    work->is_asking = false;
    if (outcome->status != LEDGER_OK && outcome->status != LEDGER_NOT_FOUND &&
        outcome->status != LEDGER_INVALID)
        work->failed = true;
    for (size_t i = 0; outcome->status == LEDGER_OK && i < outcome->chat.member_count; i++)
        if (!add_adapter_user(users, outcome->chat.members[i]))
            work->failed = true;
    advance_adapter(work->adapter);
}

/* Resolves one room. Returns false when the ledger has to answer first. */
static bool resolve_adapter_room(struct adapter_work *work)
{
    const struct adapter_rooms *except = &work->packet.except;
    bool is_except = work->resolved < except->count;
    struct slice room = is_except ? except->names[work->resolved]
                                  : work->packet.rooms.names[work->resolved - except->count];
    struct slice prefix = SLICE(USER_ROOM);
    if (slice_starts_with(room, prefix)) {
        if (!add_adapter_user(is_except ? &work->except : &work->users,
                              slice_after(room, prefix.len)))
            work->failed = true;
        work->resolved++;
        return true;
    }
    if (room.len > CHAT_ID_BYTES_MAX) {
        work->resolved++;
        return true;
    }
    work->is_asking = true;
    ledger_chat_get(work->adapter->sessions->ledger, room, SLICE_NONE, false, on_adapter_chat_read,
                    work);
    return false;
}

/* Takes the first message off the queue and reads it. */
static void begin_adapter_work(struct socketio_adapter *adapter)
{
    struct adapter_message *message =
        CONTAINER_OF(adapter->queue.next, struct adapter_message, of_queue);
    struct adapter_work *work = calloc(1, sizeof(*work));
    struct slice bytes = {message->bytes, message->len};
    const char *problem = "out of memory";
    list_remove(&message->of_queue);
    assert(adapter->queue.next != &message->of_queue);
    if (!work) {
        adapter->queue_count--;
        adapter->queue_bytes -= message->len;
        free(message);
        drop_adapter_message(adapter, problem);
        return;
    }
    work->adapter = adapter;
    work->message = message;
    bool is_read = message->is_request
                       ? adapter_request_read(bytes, &work->json, &work->packet, &problem)
                       : adapter_packet_read(bytes, &work->json, &work->packet, &problem);
    if (!is_read)
        drop_adapter_message(adapter, problem);
    if (!is_read || work->packet.act == ADAPTER_IGNORE)
        end_adapter_work(work);
    else
        adapter->work = work;
}

/* An event to everybody goes out at a pace, and what was published after it comes after it. */
static bool adapter_must_wait(struct socketio_adapter *adapter)
{
    struct loop *loop = adapter->sessions->loop;
    if (adapter->receiver->everyone->pending_count == 0)
        return false;
    if (!wheel_is_set(&adapter->waiting))
        loop_set_timer(loop, &adapter->waiting, loop->clock.now_ms + EVERYONE_STEP_MS);
    return true;
}

static void advance_adapter(struct socketio_adapter *adapter)
{
    for (;;) {
        struct adapter_work *work = adapter->work;
        if (!work && (list_empty(&adapter->queue) || adapter_must_wait(adapter)))
            return;
        if (work && work->is_asking)
            return;
        if (!work) {
            begin_adapter_work(adapter);
        } else if (work->failed ||
                   work->resolved == work->packet.except.count + work->packet.rooms.count) {
            adapter->work = NULL;
            finish_adapter_work(work);
        } else if (!resolve_adapter_room(work)) {
            return;
        }
    }
}

static void on_adapter_wait_over(struct wheel_timer *timer)
{
    advance_adapter(CONTAINER_OF(timer, struct socketio_adapter, waiting));
}

/* ---- for the owner ---- */

void socketio_adapter_init(struct socketio_adapter *adapter)
{
    list_init(&adapter->queue);
    adapter->waiting.fire = on_adapter_wait_over;
}

void socketio_adapter_free(struct socketio_adapter *adapter)
{
    if (adapter->work)
        end_adapter_work(adapter->work);
    adapter->work = NULL;
    while (adapter->queue.next && !list_empty(&adapter->queue)) {
        struct adapter_message *message =
            CONTAINER_OF(adapter->queue.next, struct adapter_message, of_queue);
        list_remove(&message->of_queue);
        assert(adapter->queue.next != &message->of_queue);
        free(message);
    }
}

/* Returns whether the channel begins with the key and this. */
static bool adapter_channel_is(const struct socketio_adapter *adapter, struct slice channel,
                               struct slice suffix)
{
    return slice_starts_with(channel, adapter->key) &&
           slice_starts_with(slice_after(channel, adapter->key.len), suffix);
}

void socketio_adapter_received(struct socketio_adapter *adapter, struct slice channel,
                               struct slice message)
{
    bool is_request = adapter_channel_is(adapter, channel, SLICE(ADAPTER_REQUESTS));
    struct adapter_message *queued = NULL;
    if (!is_request && !adapter_channel_is(adapter, channel, SLICE(ADAPTER_BROADCASTS)))
        return;
    metrics_count(adapter->sessions->metrics, METRIC_SOCKETIO_ADAPTER_RECEIVED);
    if (adapter->queue_count < SOCKETIO_ADAPTER_QUEUE_MAX &&
        message.len <= SOCKETIO_ADAPTER_QUEUE_BYTES_MAX - adapter->queue_bytes)
        queued = malloc(sizeof(*queued) + message.len);
    if (!queued) {
        drop_adapter_message(adapter, "too many wait, or too large");
        return;
    }
    *queued = (struct adapter_message){.is_request = is_request, .len = message.len};
    memcpy(queued->bytes, message.data, message.len);
    adapter->queue_count++;
    adapter->queue_bytes += message.len;
    list_append(&adapter->queue, &queued->of_queue);
    advance_adapter(adapter);
}
