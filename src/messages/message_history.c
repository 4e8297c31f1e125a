#include "messages/message_history.h"

#include <stdlib.h>

struct reading {
    struct message_plane *plane;
    bool backwards;
    message_history_done done;
    void *arg;
    size_t chat_len;
    char chat[];
};

enum { PAGES_PER_QUEUE = 8 };

/* How many of the messages fit a page, counted from the end the reader starts at. At least one. */
static size_t count_fitting(const struct reading *reading,
                            const struct ledger_messages_outcome *outcome)
{
    size_t room =
        reading->plane->config->gateway.backpressure.outbound.max_buffer_bytes / PAGES_PER_QUEUE;
    size_t bytes = 0, count = 0;
    for (; count < outcome->count; count++) {
        size_t at = reading->backwards ? outcome->count - 1 - count : count;
        bytes += outcome->messages[at].body.len;
        if (count && bytes > room)
            break;
    }
    return count;
}

static void convert(struct chat_message *out, const struct ledger_message *message)
{
    *out = (struct chat_message){
        .chat_id = message->chat,
        .message_id = message->id,
        .sequence = (int64_t)message->sequence,
        .sender_id = message->sender,
        .body = message->body,
        .sent_at_ms = message->sent_at_ms,
    };
}

static void give_page(struct reading *reading, const struct ledger_messages_outcome *outcome)
{
    struct chat_message messages[HISTORY_PAGE_MAX];
    size_t count = count_fitting(reading, outcome);
    size_t first = reading->backwards ? outcome->count - count : 0;
    for (size_t i = 0; i < count; i++)
        convert(&messages[i], &outcome->messages[first + i]);
    struct sync_response page = {
        .chat_id = {reading->chat, reading->chat_len},
        .messages = messages,
        .count = count,
        .has_more = outcome->has_more || count < outcome->count,
        .latest_sequence = (int64_t)outcome->latest_sequence,
    };
    reading->done(reading->arg, LEDGER_OK, &page);
}

static void answered(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct reading *reading = arg;
    if (outcome->status == LEDGER_OK)
        give_page(reading, outcome);
    else
        reading->done(reading->arg, outcome->status, NULL);
    free(reading);
}

static uint32_t page_limit(int64_t limit)
{
    if (limit == 0)
        return HISTORY_PAGE_DEFAULT;
    return limit < HISTORY_PAGE_MAX ? (uint32_t)limit : HISTORY_PAGE_MAX;
}

void history_read(struct message_plane *plane, const struct history_query *query,
                  message_history_done done, void *arg)
{
    struct reading *reading = malloc(sizeof(*reading) + query->chat.len);
    if (!reading || plane->stopped) {
        free(reading);
        done(arg, LEDGER_UNAVAILABLE, NULL);
        return;
    }
    *reading = (struct reading){.plane = plane,
                                .backwards = query->backwards,
                                .done = done,
                                .arg = arg,
                                .chat_len = query->chat.len};
    memcpy(reading->chat, query->chat.data, query->chat.len);
    if (query->backwards)
        ledger_messages_before(plane->ledger, query->chat, query->viewer, query->sequence,
                               page_limit(query->limit), answered, reading);
    else
        ledger_messages_after(plane->ledger, query->chat, query->viewer, query->sequence,
                              page_limit(query->limit), answered, reading);
}
