#include "webhooks/webhook_event.h"

#include "text/json.h"
#include "text/time_text.h"

#include <stdlib.h>
#include <xxhash.h>

struct webhook_event *webhook_event_make(const struct ledger_event *event, int64_t now_ms)
{
    size_t bytes = event->position.len + event->subject.len + event->data.len + event->body.len;
    struct webhook_event *made = malloc(sizeof(*made) + bytes);
    if (!made)
        return NULL;
    *made =
        (struct webhook_event){.type = event->type,
                               .time_ms = event->time_ms,
                               .added_at_ms = now_ms,
                               .read_at_ms = now_ms,
                               .order_hash = XXH3_64bits(event->subject.data, event->subject.len),
                               .is_about_message = event->sequence != 0};
    char *at = made->bytes; /* the assignment may write here too, into the padding of the struct */
    made->position = slice_copy_to(&at, event->position);
    made->subject = slice_copy_to(&at, event->subject);
    made->data = slice_copy_to(&at, event->data);
    made->body = slice_copy_to(&at, event->body);
    webhook_event_id(made->id, event->type, event->time_ms, event->subject, event->data);
    list_init(&made->item);
    return made;
}

void webhook_event_free(struct webhook_event **event)
{
    if (!*event)
        return;
    list_remove(&(*event)->item);
    free((*event)->replaced_data);
    free(*event);
    *event = NULL;
}

void webhook_event_refresh(struct webhook_event *event, const struct ledger_event *read,
                           int64_t now_ms)
{
    event->read_at_ms = now_ms;
    if (read->body.len == 0)
        event->body = SLICE_NONE;
}

void webhook_event_id(char out[WEBHOOK_EVENT_ID_BYTES], enum ledger_event_type type,
                      int64_t time_ms, struct slice subject, struct slice data)
{
    static const char digits[] = "0123456789abcdef", prefix[] = {'e', 'v', 't', '_'};
    XXH128_hash_t hash = XXH3_128bits_withSeed(
        data.data, data.len, XXH3_64bits_withSeed(subject.data, subject.len, (uint64_t)time_ms));
    hash.high64 ^= (uint64_t)type * 0x9e3779b97f4a7c15u;
    memcpy(out, prefix, sizeof(prefix));
    for (int i = 0; i < 16; i++) {
        out[4 + i] = digits[hash.high64 >> (60 - 4 * i) & 15];
        out[20 + i] = digits[hash.low64 >> (60 - 4 * i) & 15];
    }
}

/* The data is the ledger's own: an object that is not empty. */
static void write_message_data(struct buffer *out, const struct webhook_event *event)
{
    json_write_raw(out, (struct slice){event->data.data, event->data.len - 1});
    if (event->body.len) {
        json_write_key_string(out, SLICE("body"), event->body);
    } else {
        json_write_key(out, SLICE("deleted"));
        json_write_bool(out, true);
    }
    json_write_object_end(out);
}

void webhook_event_write(struct buffer *out, const struct webhook_event *event)
{
    char time[TIME_TEXT_LEN];
    time_text_write(time, event->time_ms);
    json_write_object(out);
    json_write_key_string(out, SLICE("id"), (struct slice){event->id, sizeof(event->id)});
    json_write_key_string(out, SLICE("type"), slice_of(ledger_event_type_name(event->type)));
    json_write_key_string(out, SLICE("time"), (struct slice){time, sizeof(time)});
    json_write_key(out, SLICE("data"));
    if (event->is_about_message)
        write_message_data(out, event);
    else
        json_write_raw(out, event->data);
    json_write_object_end(out);
}
