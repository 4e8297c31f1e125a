#include "dialect.h"

#include <string.h>

/* As long as the presence_changed that Rollcall sends. */
#define FLOOR_ANNOUNCEMENT                                                                         \
    "!{\"type\":\"presence_changed\",\"user_id\":\"star\",\"status\":\"online\","                  \
    "\"in_call\":false,\"last_seen\":null,\"timestamp\":\"2030-01-01T00:00:00.000Z\",\"version\":1}"

static const struct dialect dialects[] = {
    {
        .name = "floor",
        .path = "/",
        .heartbeat = "{\"type\":\"heartbeat\"}",
        .heartbeat_active = "{\"type\":\"heartbeat\",\"active\":true}",
        .heartbeat_reply = "\"heartbeat\"",
        .changed = "presence_changed",
        .announcement = FLOOR_ANNOUNCEMENT,
    },
    {
        .name = "native",
        .path = "/v1/ws",
        .ready = "\"connection_established\"",
        .heartbeat = "{\"type\":\"heartbeat\"}",
        .heartbeat_active = "{\"type\":\"heartbeat\",\"active\":true}",
        .heartbeat_reply = "\"heartbeat_ack\"",
        .subscribe = "{\"type\":\"subscribe_presence\",\"user_ids\":[\"" DIALECT_STAR "\"]}",
        .subscribed = "\"presence_snapshot\"",
        .changed = "\"presence_changed\"",
    },
    {
        .name = "socketio",
        .path = "/socket.io/?EIO=4&transport=websocket",
        .opening = "0{",
        .opening_reply = "40{\"token\":\"",
        .opening_reply_end = "\"}",
        .ready = "40{\"sid\"",
        .greeting = "42[\"connection_established\"",
        .probe = "2",
        .probe_reply = "3",
        .heartbeat = "4277[\"HEARTBEAT\",{}]",
        .heartbeat_active = "4277[\"HEARTBEAT\",{\"active\":true}]",
        .heartbeat_reply = "4377[",
        .subscribe = "4278[\"subscribe_presence\",{\"user_ids\":[\"" DIALECT_STAR "\"]}]",
        .subscribed = "4378[",
        .changed = "42[\"presence_changed\"",
    },
};

const struct dialect *dialect_find(const char *name)
{
    for (size_t i = 0; i < sizeof(dialects) / sizeof(dialects[0]); i++)
        if (strcmp(dialects[i].name, name) == 0)
            return &dialects[i];
    return NULL;
}

bool dialect_contains(const char *text, size_t count, const char *part)
{
    return memmem(text, count, part, strlen(part)) != NULL;
}

bool dialect_starts_with(const char *text, size_t count, const char *part)
{
    size_t part_bytes = strlen(part);
    return count >= part_bytes && memcmp(text, part, part_bytes) == 0;
}
