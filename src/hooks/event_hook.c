#include "hooks/event_hook.h"

#include "auth/user_id.h"
#include "base/buffer.h"
#include "base/container.h"
#include "text/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUSY_TEXT "too many events wait for the application"
#define FAILED_TEXT "the application does not answer"
#define REFUSED_TEXT "the application refused the event"

enum { REFUSAL_BYTES_MAX = 256 };

/* The events of one connection that are not answered yet; the first one is in flight. */
struct event_lane {
    struct table_node node;
    struct list of_hook;
    struct event_hook *events;
    struct ulid conn_id;
    struct list waiting;
    struct event_item *asked; /* never NULL between two turns */
    size_t user_len;
    char user[USER_ID_BYTES_MAX];
};

struct event_item {
    struct list of_lane;
    struct event_lane *lane;
    struct buffer body;
    int64_t received_at_ms;
    event_hook_done done;
    void *arg;
};

static struct slice lane_key(const struct ulid *conn_id)
{
    return (struct slice){(const char *)conn_id->bytes, sizeof(conn_id->bytes)};
}

static bool lane_matches(const struct table_node *node, struct slice key)
{
    const struct event_lane *lane = CONTAINER_OF(node, struct event_lane, node);
    return slice_equal(lane_key(&lane->conn_id), key);
}

bool event_hook_init(struct event_hook *events, struct hook *hook, uint32_t in_flight_max,
                     uint64_t hash_seed)
{
    *events = (struct event_hook){
        .hook = hook,
        .user_lanes_max = (in_flight_max + EVENT_HOOK_USER_SHARE - 1) / EVENT_HOOK_USER_SHARE,
    };
    list_init(&events->all_lanes);
    return table_init(&events->lanes, hash_seed, lane_matches);
}

void event_hook_free(struct event_hook *events)
{
    table_free(&events->lanes);
}

/* ---- answers ---- */

static void end_event_item(struct event_item *item, const struct event_answer *answer)
{
    item->done(item->arg, answer);
    buffer_free(&item->body);
    free(item);
}

/* What the application says about a refusal, in `text`. */
static void read_event_refusal(struct slice body, char text[REFUSAL_BYTES_MAX])
{
    struct buffer copy = BUFFER_INIT;
    struct json json;
    struct slice key, message = SLICE_NONE;
    buffer_append_slice(&copy, body);
    json_init(&json, copy.data, copy.failed ? 0 : copy.len);
    json_object(&json);
    while (json_member(&json, &key))
        if (!slice_is(key, "message") || json_peek(&json) != JSON_STRING)
            json_skip(&json);
        else
            json_string(&json, &message);
    bool is_said = json_done(&json) && message.len;
    snprintf(text, REFUSAL_BYTES_MAX, "%.*s",
             SLICE_FORMAT((is_said ? message : SLICE(REFUSED_TEXT))));
    buffer_free(&copy);
}

/* An answer must be JSON that a client's message can carry. */
static struct event_answer judge_event_body(struct slice body)
{
    struct json json;
    struct slice raw;
    if (!body.len)
        return (struct event_answer){EVENT_ANSWERED, .data = SLICE("null")};
    json_init(&json, (char *)body.data, body.len); /* json_raw() writes nothing */
    if (json_raw(&json, &raw) && json_done(&json) && json_can_be_wrapped(raw))
        return (struct event_answer){EVENT_ANSWERED, .data = raw};
    return (struct event_answer){EVENT_FAILED, .text = "the application's answer is no JSON"};
}

static void answer_event_item(struct event_item *item, const struct hook_answer *answer)
{
    char text[REFUSAL_BYTES_MAX];
    struct event_answer result = {EVENT_FAILED, .text = FAILED_TEXT};
    if (answer->result == HOOK_REFUSED) {
        read_event_refusal(answer->body, text);
        result = (struct event_answer){EVENT_REFUSED, .status = answer->status, .text = text};
    } else if (answer->result == HOOK_ACCEPTED) {
        result = judge_event_body(answer->body);
    }
    end_event_item(item, &result);
}

/* ---- lanes ---- */

static void on_event_answered(void *arg, const struct hook_answer *answer);

/* Returns false after ending the item. */
static bool ask_event_item(struct event_item *item)
{
    const struct hook *hook = item->lane->events->hook;
    struct event_answer refusal = {EVENT_BUSY, .text = BUSY_TEXT};
    enum hook_admission admission = HOOK_TOO_MANY;
    if (hook->loop->clock.now_ms - item->received_at_ms <= hook->time_limit_ms)
        admission =
            hook_ask(item->lane->events->hook, buffer_slice(&item->body), on_event_answered, item);
    if (admission == HOOK_ADMITTED)
        return true;
    if (admission == HOOK_BREAKER_OPEN)
        refusal = (struct event_answer){EVENT_FAILED, .text = FAILED_TEXT};
    end_event_item(item, &refusal);
    return false;
}

static void free_event_lane(struct event_lane *lane)
{
    table_remove(&lane->events->lanes, &lane->node);
    list_remove(&lane->of_hook);
    free(lane);
}

/* Asks the next event of the lane that may be asked; without one the lane ends. */
static void advance_event_lane(struct event_lane *lane)
{
    lane->asked = NULL;
    while (!lane->asked && !list_empty(&lane->waiting)) {
        struct event_item *item = CONTAINER_OF(lane->waiting.next, struct event_item, of_lane);
        list_remove(&item->of_lane);
        assert(lane->waiting.next != &item->of_lane);
        lane->events->waiting_bytes -= item->body.len;
        lane->asked = item; /* done() may send another event */
        if (!ask_event_item(item))
            lane->asked = NULL;
    }
    if (!lane->asked)
        free_event_lane(lane);
}

static void on_event_answered(void *arg, const struct hook_answer *answer)
{
    struct event_item *item = arg;
    struct event_lane *lane = item->lane;
    answer_event_item(item, answer);
    advance_event_lane(lane);
}

static size_t count_user_lanes(const struct event_hook *events, struct slice user_id)
{
    size_t count = 0;
    for (struct list *at = events->all_lanes.next; at != &events->all_lanes; at = at->next) {
        const struct event_lane *lane = CONTAINER_OF(at, struct event_lane, of_hook);
        count += slice_equal((struct slice){lane->user, lane->user_len}, user_id);
    }
    return count;
}

/* Returns NULL when the user has enough lanes, or when out of memory. */
static struct event_lane *make_event_lane(struct event_hook *events,
                                          const struct event_question *question)
{
    if (events->lanes.size >= events->user_lanes_max &&
        count_user_lanes(events, question->user_id) >= events->user_lanes_max)
        return NULL;
    struct event_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return NULL;
    lane->events = events;
    lane->conn_id = question->conn_id;
    lane->user_len = question->user_id.len;
    memcpy(lane->user, question->user_id.data, question->user_id.len);
    list_init(&lane->waiting);
    list_append(&events->all_lanes, &lane->of_hook);
    table_insert(&events->lanes, &lane->node, lane_key(&lane->conn_id));
    return lane;
}

/* ---- questions ---- */

static void write_event_question(struct buffer *out, const struct event_question *question)
{
    char conn_text[ULID_TEXT_LEN];
    ulid_write(conn_text, &question->conn_id);
    json_write_object(out);
    json_write_key_string(out, SLICE("user_id"), question->user_id);
    json_write_key_string(out, SLICE("device_id"), question->device_id);
    json_write_key_string(out, SLICE("conn_id"), (struct slice){conn_text, sizeof(conn_text)});
    json_write_key_string(out, SLICE("name"), question->name);
    json_write_key(out, SLICE("data"));
    json_write_raw(out, question->data.data ? question->data : SLICE("null"));
    json_write_key(out, SLICE("args"));
    json_write_array(out);
    if (question->args.data)
        json_write_raw(out, question->args);
    json_write_array_end(out);
    json_write_object_end(out);
}

/* Returns NULL when out of memory. */
static struct event_item *make_event_item(const struct event_hook *events,
                                          const struct event_question *question,
                                          event_hook_done done, void *arg)
{
    struct event_item *item = calloc(1, sizeof(*item));
    if (!item)
        return NULL;
    item->received_at_ms = events->hook->loop->clock.now_ms;
    item->done = done;
    item->arg = arg;
    list_init(&item->of_lane);
    write_event_question(&item->body, question);
    if (!item->body.failed)
        return item;
    buffer_free(&item->body);
    free(item);
    return NULL;
}

static void wait_event_item(struct event_lane *lane, struct event_item *item)
{
    struct event_hook *events = lane->events;
    if (item->body.len > EVENT_HOOK_WAITING_BYTES_MAX - events->waiting_bytes) {
        end_event_item(item, &(struct event_answer){EVENT_BUSY, .text = BUSY_TEXT});
        return;
    }
    events->waiting_bytes += item->body.len;
    list_append(&lane->waiting, &item->of_lane);
}

void event_hook_ask(struct event_hook *events, const struct event_question *question,
                    event_hook_done done, void *arg)
{
    struct table_node *node = table_find(&events->lanes, lane_key(&question->conn_id));
    struct event_lane *lane = node ? CONTAINER_OF(node, struct event_lane, node) : NULL;
    struct event_item *item = make_event_item(events, question, done, arg);
    bool is_first = !lane;
    if (item && is_first)
        lane = make_event_lane(events, question);
    if (!item || !lane) {
        if (item) {
            buffer_free(&item->body);
            free(item);
        }
        done(arg, &(struct event_answer){EVENT_BUSY, .text = BUSY_TEXT});
        return;
    }
    item->lane = lane;
    if (!is_first) {
        wait_event_item(lane, item);
        return;
    }
    lane->asked = item;
    if (!ask_event_item(item))
        advance_event_lane(lane);
}
