#include "redis/redis_subscriber.h"

#include "base/container.h"
#include "log/log.h"
#include "redis/redis_pubsub.h"

#include <stdlib.h>

enum { LEAVING_BYTES_MAX = 4 * 1024 * 1024 };

static struct slice name_of(const struct redis_channel *channel)
{
    return (struct slice){channel->name, channel->len};
}

static struct redis_channel *first_of(const struct list *list)
{
    return CONTAINER_OF(list->next, struct redis_channel, place);
}

static void set_state(struct redis_subscriber *line, struct redis_channel *channel,
                      enum redis_channel_state state)
{
    struct list *lists[] = {[REDIS_CHANNEL_WANTED] = &line->wanted,
                            [REDIS_CHANNEL_ASKED] = &line->asked,
                            [REDIS_CHANNEL_LIVE] = &line->live};
    channel->state = state;
    list_remove(&channel->place);
    list_append(lists[state], &channel->place);
}

static void send_soon(struct redis_subscriber *line)
{
    if (!wheel_is_set(&line->timer))
        loop_set_timer(line->loop, &line->timer, line->loop->clock.now_ms);
}

/* ---- batches ---- */

static void write_channels(struct redis_subscriber *line, struct buffer *out)
{
    const struct slice one = line->sharded ? SLICE("SSUBSCRIBE") : SLICE("SUBSCRIBE");
    for (int i = 0; i < REDIS_SUBSCRIBE_BATCH && !list_empty(&line->wanted); i++) {
        struct redis_channel *channel = first_of(&line->wanted);
        /* one command each: on a cluster they are in different slots */
        resp_write_command(out, (const struct slice[]){one, name_of(channel)}, 2);
        set_state(line, channel, REDIS_CHANNEL_ASKED);
    }
}

/* Those that were refused, or whose connection is gone. */
static void put_out(struct redis_subscriber *line, struct list *list)
{
    while (!list_empty(list)) {
        struct redis_channel *channel = first_of(list);
        redis_subscriber_remove(line, channel, false);
        line->owner->on_unassigned(line, channel);
    }
}

static void batch_done(void *arg, const struct resp_value *reply)
{
    struct redis_subscriber *line = arg;
    line->in_flight = false;
    if (reply && reply->type == RESP_ERROR)
        line->owner->on_refused(line, reply);
    put_out(line, &line->asked);
    if (!list_empty(&line->wanted) || line->leaving.len > 0)
        send_soon(line);
}

static void send_batch(struct redis_subscriber *line)
{
    struct buffer *out = &line->scratch;
    if (line->in_flight || redis_connection_problem(line->link) != REDIS_FINE)
        return;
    buffer_clear(out);
    if (line->leaving.len > 0)
        buffer_append_slice(out, buffer_slice(&line->leaving));
    else
        write_channels(line, out);
    buffer_clear(&line->leaving);
    if (out->len == 0 && !out->failed)
        return;
    line->in_flight = !out->failed &&
                      redis_connection_send_fenced(line->link, buffer_slice(out), batch_done, line);
    if (line->in_flight)
        return;
    put_out(line, &line->asked); /* all of them come back in a while: memory is short now */
    put_out(line, &line->wanted);
}

static void fire(struct wheel_timer *timer)
{
    send_batch(CONTAINER_OF(timer, struct redis_subscriber, timer));
}

/* ---- what the server says ---- */

static void take_confirmation(struct redis_subscriber *line, struct slice name)
{
    struct redis_channel *channel = line->owner->find(line, name);
    if (!channel || channel->line != line || channel->state != REDIS_CHANNEL_ASKED)
        return;
    set_state(line, channel, REDIS_CHANNEL_LIVE);
    line->owner->on_live(line, name);
}

static void take_eviction(struct redis_subscriber *line, struct slice name)
{
    struct redis_channel *channel = line->owner->find(line, name);
    if (!channel || channel->line != line || channel->state == REDIS_CHANNEL_WANTED)
        return;
    log_info("redis_channel_evicted", "channel=%s", log_quote(name));
    redis_subscriber_remove(line, channel, false);
    line->owner->on_unassigned(line, channel);
}

static void take_push(struct redis_connection *link, void *arg, const struct resp_value *push)
{
    struct redis_subscriber *line = arg;
    (void)link;
    if (push->count < 3)
        return;
    struct slice kind = push->items[0].text;
    struct slice channel = push->items[1].text;
    if (slice_is(kind, "message") || slice_is(kind, "smessage"))
        line->owner->on_message(line, channel, push->items[2].text);
    else if (slice_is(kind, "subscribe") || slice_is(kind, "ssubscribe"))
        take_confirmation(line, channel);
    else if (slice_is(kind, "unsubscribe") || slice_is(kind, "sunsubscribe"))
        take_eviction(line, channel);
}

static void link_changed(struct redis_connection *link, void *arg)
{
    struct redis_subscriber *line = arg;
    if (redis_connection_problem(link) == REDIS_FINE) {
        send_soon(line);
        return;
    }
    buffer_clear(&line->leaving); /* gone with the connection */
    put_out(line, &line->asked);
    put_out(line, &line->live);
}

static const struct redis_connection_owner link_owner = {link_changed, take_push};

/* ---- what the owner does ---- */

void redis_subscriber_add(struct redis_subscriber *line, struct redis_channel *channel)
{
    channel->line = line;
    channel->state = REDIS_CHANNEL_WANTED;
    line->channel_count++;
    set_state(line, channel, REDIS_CHANNEL_WANTED);
    send_soon(line);
}

/* Where there is no room the server goes on sending what nobody here passes on. */
static void write_leaving(struct redis_subscriber *line, const struct redis_channel *channel)
{
    const struct slice word = line->sharded ? SLICE("SUNSUBSCRIBE") : SLICE("UNSUBSCRIBE");
    size_t before = line->leaving.len;
    resp_write_command(&line->leaving, (const struct slice[]){word, name_of(channel)}, 2);
    if (line->leaving.failed) {
        line->leaving.failed = false;
        line->leaving.len = before;
    }
    send_soon(line);
}

void redis_subscriber_remove(struct redis_subscriber *line, struct redis_channel *channel,
                             bool unsubscribe)
{
    if (unsubscribe && channel->state != REDIS_CHANNEL_WANTED)
        write_leaving(line, channel);
    set_state(line, channel, REDIS_CHANNEL_WANTED);
    list_remove(&channel->place);
    channel->line = NULL;
    line->channel_count--;
}

struct redis_subscriber *redis_subscriber_make(struct redis_connection_context *links,
                                               const struct redis_endpoint *endpoint, bool sharded,
                                               const struct redis_subscriber_owner *owner,
                                               void *arg)
{
    struct redis_subscriber *line = calloc(1, sizeof(*line));
    if (!line)
        return NULL;
    *line = (struct redis_subscriber){.owner = owner,
                                      .arg = arg,
                                      .sharded = sharded,
                                      .leaving = BUFFER_BOUNDED(LEAVING_BYTES_MAX),
                                      .timer = {.fire = fire},
                                      .loop = links->loop};
    list_init(&line->place);
    list_init(&line->wanted);
    list_init(&line->asked);
    list_init(&line->live);
    line->link = redis_connection_make(links, endpoint, &link_owner, line);
    if (!line->link) {
        free(line);
        return NULL;
    }
    return line;
}

void redis_subscriber_free(struct redis_subscriber **line)
{
    struct redis_subscriber *freed = *line;
    *line = NULL;
    redis_connection_end(&freed->link);
    loop_cancel_timer(freed->loop, &freed->timer);
    list_remove(&freed->place);
    buffer_free(&freed->leaving);
    buffer_free(&freed->scratch);
    free(freed);
}
