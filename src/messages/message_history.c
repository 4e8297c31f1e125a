#include "messages/message_history.h"

#include <stdlib.h>

/* A read under way. */
struct message_history_read {
    struct message_plane *plane;
    bool backwards;
    message_history_done done;
    void *arg;
    size_t chat_len;
    char chat[];
};

enum { PAGES_PER_QUEUE = 8 };

/* Returns how many messages fit into a page, counted from the end at which the reader starts; at least 1. */
static size_t count_fitting_messages(const struct message_history_read *read,
                                     const struct ledger_messages_outcome *outcome)
{
    size_t bytes_max =
        read->plane->config->gateway.backpressure.outbound.max_buffer_bytes / PAGES_PER_QUEUE;
    size_t bytes = 0, count = 0;
    for (; count < outcome->count; count++) {
        size_t at = read->backwards ? outcome->count - 1 - count : count;
        bytes += outcome->messages[at].body.len;
        if (count && bytes > bytes_max)
            break;
    }
    return count;
}

static void complete_history_page(struct message_history_read *read,
                                  const struct ledger_messages_outcome *outcome)
{
    struct chat_message messages[MESSAGE_HISTORY_PAGE_MAX];
    size_t count = count_fitting_messages(read, outcome);
    size_t first = read->backwards ? outcome->count - count : 0;
    for (size_t i = 0; i < count; i++) {
        const struct ledger_message *message = &outcome->messages[first + i];
        messages[i] = (struct chat_message){
            .chat_id = message->chat,
            .message_id = message->id,
            .sequence = (int64_t)message->sequence,
            .sender_id = ledger_message_sender(message->sender),
            .body = message->body,
            .sent_at_ms = message->sent_at_ms,
        };
    }
    struct sync_response page = {
        .chat_id = {read->chat, read->chat_len},
        .messages = messages,
        .count = count,
        .has_more = outcome->has_more || count < outcome->count,
        .latest_sequence = (int64_t)outcome->latest_sequence,
    };
    read->done(read->arg, LEDGER_OK, &page);
}

static void on_history_page_loaded(void *arg, const struct ledger_messages_outcome *outcome)
{
    struct message_history_read *read = arg;
    if (outcome->status == LEDGER_OK)
        complete_history_page(read, outcome);
    else
        read->done(read->arg, outcome->status, NULL);
    free(read);
}

void message_history_read(struct message_plane *plane, const struct message_history_query *query,
                          message_history_done done, void *arg)
{
    struct message_history_read *read = malloc(sizeof(*read) + query->chat.len);
    if (!read || plane->stopped) {
        free(read);
        done(arg, LEDGER_UNAVAILABLE, NULL);
        return;
    }
    *read = (struct message_history_read){.plane = plane,
                                          .backwards = query->backwards,
                                          .done = done,
                                          .arg = arg,
                                          .chat_len = query->chat.len};
    memcpy(read->chat, query->chat.data, query->chat.len);
    uint32_t limit = MESSAGE_HISTORY_PAGE_MAX;
    if (query->limit == 0)
        limit = MESSAGE_HISTORY_PAGE_DEFAULT;
    else if (query->limit < MESSAGE_HISTORY_PAGE_MAX)
        limit = (uint32_t)query->limit;
    if (query->backwards)
        ledger_messages_before(plane->ledger, query->chat, query->reader, query->sequence, limit,
                               on_history_page_loaded, read);
    else
        ledger_messages_after(plane->ledger, query->chat, query->reader, query->sequence, limit,
                              on_history_page_loaded, read);
}
