#include "routing/chat_topic.h"

#include "protocol/message.h"

#include <string.h>

#define CHAT_TOPIC_PREFIX SLICE("chat:")

static const struct slice CHAT_TOPIC_SUFFIXES[] = {
    [CHAT_TOPIC_PRESENCE] = {":presence", 9},
    [CHAT_TOPIC_TYPING] = {":typing", 7},
};

struct slice chat_topic_name(char *out, struct slice chat_id, enum chat_topic topic)
{
    struct slice suffix = CHAT_TOPIC_SUFFIXES[topic];
    char *at = mempcpy(out, CHAT_TOPIC_PREFIX.data, CHAT_TOPIC_PREFIX.len);
    at = mempcpy(at, chat_id.data, chat_id.len);
    at = mempcpy(at, suffix.data, suffix.len);
    return (struct slice){out, (size_t)(at - out)};
}

enum chat_topic chat_topic_parse(struct slice name, struct slice *chat_id)
{
    if (!slice_starts_with(name, CHAT_TOPIC_PREFIX))
        return CHAT_TOPIC_NONE;
    struct slice rest = slice_after(name, CHAT_TOPIC_PREFIX.len);
    for (int topic = CHAT_TOPIC_PRESENCE; topic <= CHAT_TOPIC_TYPING; topic++) {
        struct slice suffix = CHAT_TOPIC_SUFFIXES[topic];
        if (rest.len < suffix.len || !slice_equal(slice_after(rest, rest.len - suffix.len), suffix))
            continue;
        *chat_id = slice_first(rest, rest.len - suffix.len);
        bool is_chat = chat_id->len > 0 && chat_id->len <= CHAT_ID_BYTES_MAX;
        return is_chat ? (enum chat_topic)topic : CHAT_TOPIC_NONE;
    }
    return CHAT_TOPIC_NONE;
}

struct topic *chat_topic_of(const struct router *router, struct slice chat_id,
                            enum chat_topic topic)
{
    char name[ROUTER_TOPIC_BYTES_MAX];
    return router_topic(router, chat_topic_name(name, chat_id, topic));
}
