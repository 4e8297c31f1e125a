#include "scenario.h"

#include "text/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *scenario_copy(struct slice text)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        abort();
    if (text.len > 0)
        memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    return copy;
}

/* ---- lines of the output ---- */

static void scenario_print(struct buffer *line)
{
    json_write_object_end(line);
    buffer_append_byte(line, '\n');
    if (line->failed)
        abort();
    fwrite(line->data, 1, line->len, stdout);
    fflush(stdout);
    buffer_free(line);
}

void scenario_print_result(int64_t id, struct slice json)
{
    struct buffer line = BUFFER_INIT;
    json_write_object(&line);
    json_write_key_int(&line, SLICE("id"), id);
    json_write_key(&line, SLICE("result"));
    json_write_raw(&line, json.len > 0 ? json : SLICE("null"));
    scenario_print(&line);
}

void scenario_print_error(int64_t id, const char *code, const char *text)
{
    struct buffer line = BUFFER_INIT;
    json_write_object(&line);
    json_write_key_int(&line, SLICE("id"), id);
    json_write_key(&line, SLICE("error"));
    json_write_object(&line);
    json_write_key_string(&line, SLICE("code"), slice_of(code));
    json_write_key_string(&line, SLICE("message"), slice_of(text));
    json_write_object_end(&line);
    scenario_print(&line);
}

static void scenario_begin_event(struct buffer *line, const struct scenario_client *client,
                                 const char *name)
{
    *line = BUFFER_INIT;
    json_write_object(line);
    json_write_key_string(line, SLICE("client"), slice_of(client->name));
    json_write_key_string(line, SLICE("event"), slice_of(name));
    json_write_key(line, SLICE("data"));
}

static void scenario_print_event(const struct scenario_client *client, const char *name,
                                 const struct rollcall_event *event)
{
    struct buffer line;
    scenario_begin_event(&line, client, name);
    json_write_raw(&line, (struct slice){event->json, event->json_len});
    scenario_print(&line);
}

static void scenario_print_state(const struct scenario_client *client,
                                 const struct rollcall_event *event)
{
    struct buffer line;
    char state[16] = "";
    const char *name = rollcall_state_name(event->state);
    for (size_t i = 0; name[i] && i < sizeof(state) - 1; i++)
        state[i] = (char)toupper((unsigned char)name[i]);
    scenario_begin_event(&line, client, "state");
    json_write_object(&line);
    json_write_key_string(&line, SLICE("state"), slice_of(state));
    json_write_key_bool(&line, SLICE("final"), event->state == ROLLCALL_STOPPED);
    json_write_key_string(&line, SLICE("reason"), slice_of(event->code));
    json_write_object_end(&line);
    scenario_print(&line);
}

/* The library gives no JSON for messages of its own. */
static void scenario_print_own_message(const struct scenario_client *client,
                                       const struct rollcall_event *event)
{
    struct buffer line;
    scenario_begin_event(&line, client, "message");
    json_write_object(&line);
    json_write_key_string(&line, SLICE("chat_id"), slice_of(event->chat_id));
    json_write_key_string(&line, SLICE("message_id"), slice_of(event->message_id));
    json_write_key_int(&line, SLICE("sequence"), event->sequence);
    json_write_key_string(&line, SLICE("sender_id"), slice_of(event->user_id));
    json_write_key_string(&line, SLICE("body"), (struct slice){event->body, event->body_len});
    json_write_object_end(&line);
    scenario_print(&line);
}

/* ---- commands that wait for an event ---- */

struct pending_answer *scenario_client_await(struct scenario_client *client, int64_t id,
                                             const char *kind, const char *key)
{
    struct pending_answer *pending = calloc(1, sizeof(*pending));
    if (!pending)
        abort();
    pending->id = id;
    snprintf(pending->key, sizeof(pending->key), "%s %s", kind, key);
    struct pending_answer **end = &client->pending;
    while (*end)
        end = &(*end)->next;
    *end = pending;
    return pending;
}

/* Returns false if no command waits for it; else the caller answers *found. */
static bool scenario_client_take(struct scenario_client *client, const char *kind, const char *key,
                                 struct pending_answer *found)
{
    char wanted[SCENARIO_KEY_BYTES];
    snprintf(wanted, sizeof(wanted), "%s %s", kind, key);
    struct pending_answer **at = &client->pending;
    while (*at && strcmp((*at)->key, wanted) != 0)
        at = &(*at)->next;
    if (!*at)
        return false;
    struct pending_answer *taken = *at;
    *at = taken->next;
    *found = *taken;
    free(taken);
    return true;
}

static void on_stopped(struct scenario_client *client, const struct rollcall_event *event)
{
    struct pending_answer closing;
    if (scenario_client_take(client, "close", "", &closing))
        scenario_print_result(closing.id, SLICE_NONE);
    while (client->pending) {
        struct pending_answer *next = client->pending->next;
        scenario_print_error(client->pending->id, event->code, event->text);
        free(client->pending);
        client->pending = next;
    }
}

/* ---- events ---- */

static int64_t latest_sequence_of(const struct rollcall_event *event)
{
    struct json json;
    struct slice key;
    int64_t latest = 0;
    char *copy = scenario_copy((struct slice){event->json, event->json_len});
    json_init(&json, copy, event->json_len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "latest_sequence"))
            json_int(&json, &latest);
        else
            json_skip(&json);
    }
    free(copy);
    return latest;
}

static void on_chat_snapshot(struct scenario_client *client, const struct rollcall_event *event)
{
    struct pending_answer opened;
    if (!scenario_client_take(client, "open", event->chat_id, &opened))
        return;
    if (opened.follows)
        rollcall_follow(client->client, event->chat_id, latest_sequence_of(event));
    scenario_print_result(opened.id, (struct slice){event->json, event->json_len});
}

static void on_error(struct scenario_client *client, const struct rollcall_event *event)
{
    struct pending_answer failed;
    bool is_open = scenario_client_take(client, "open", event->chat_id, &failed);
    if (is_open) {
        rollcall_close_chat(client->client, event->chat_id);
        rollcall_unfollow(client->client, event->chat_id);
    }
    if (is_open || scenario_client_take(client, "call", event->call_id, &failed) ||
        scenario_client_take(client, "event", event->id, &failed))
        scenario_print_error(failed.id, event->code, event->text);
}

static void on_other(struct scenario_client *client, const struct rollcall_event *event)
{
    struct pending_answer answered;
    bool is_typing = strcmp(event->name, "typing_changed") == 0;
    bool answers_call = strcmp(event->name, "call_ringing") == 0 || strcmp(event->name, "ok") == 0;
    if (strcmp(event->name, "chat_snapshot") == 0)
        on_chat_snapshot(client, event);
    else if ((answers_call && scenario_client_take(client, "call", event->call_id, &answered)) ||
             scenario_client_take(client, "event", event->id, &answered))
        scenario_print_result(answered.id, (struct slice){event->json, event->json_len});
    else
        scenario_print_event(client, is_typing ? "typing" : event->name, event);
}

static void on_event(void *arg, const struct rollcall_event *event)
{
    struct scenario_client *client = arg;
    struct pending_answer sent;
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        scenario_print_state(client, event);
        if (event->state == ROLLCALL_STOPPED)
            on_stopped(client, event);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        if (event->json_len > 0)
            scenario_print_event(client, "message", event);
        else
            scenario_print_own_message(client, event);
        break;
    case ROLLCALL_EVENT_SENT:
        if (scenario_client_take(client, "sent", event->client_message_id, &sent))
            scenario_print_result(sent.id, (struct slice){event->json, event->json_len});
        break;
    case ROLLCALL_EVENT_REFUSED:
        if (scenario_client_take(client, "sent", event->client_message_id, &sent))
            scenario_print_error(sent.id, event->code, event->text);
        break;
    case ROLLCALL_EVENT_PRESENCE:
        scenario_print_event(client, "presence", event);
        break;
    case ROLLCALL_EVENT_ERROR:
        on_error(client, event);
        break;
    case ROLLCALL_EVENT_OTHER:
        on_other(client, event);
        break;
    }
}

/* ---- opening ---- */

static const char *read_token(void *arg)
{
    struct scenario_client *client = arg;
    FILE *file = fopen(client->token_file, "r");
    size_t len = file ? fread(client->token, 1, sizeof(client->token) - 1, file) : 0;
    if (file)
        fclose(file);
    client->token[len] = '\0';
    return len > 0 ? client->token : NULL;
}

struct scenario_client *scenario_client_open(const struct scenario_command *command)
{
    struct scenario_client *client = calloc(1, sizeof(*client));
    struct slice address = slice_after(command->url, sizeof("http://127.0.0.1:") - 1);
    char port_text[8], device[256];
    snprintf(port_text, sizeof(port_text), "%.*s", SLICE_FORMAT(address));
    unsigned long port = strtoul(port_text, NULL, 10); /* ends at the slash */
    snprintf(device, sizeof(device), "%.*s", SLICE_FORMAT(command->device_id));
    if (!client || port == 0)
        abort();
    client->name = scenario_copy(command->client);
    client->token_file = scenario_copy(command->token_file);
    if (!read_token(client))
        abort();
    client->client = rollcall_open(&(struct rollcall_options){.host = "127.0.0.1",
                                                              .port = (uint16_t)port,
                                                              .token = client->token,
                                                              .device_id = device,
                                                              .event = on_event,
                                                              .fresh_token = read_token,
                                                              .arg = client});
    client->api = rollcall_api_open(&(struct rollcall_api_options){.host = "127.0.0.1",
                                                                   .port = (uint16_t)port,
                                                                   .token = client->token,
                                                                   .fresh_token = read_token,
                                                                   .arg = client});
    if (!client->client || !client->api)
        abort();
    return client;
}

void scenario_client_free(struct scenario_client **client)
{
    struct scenario_client *freed = *client;
    *client = NULL;
    while (freed->pending) {
        struct pending_answer *next = freed->pending->next;
        free(freed->pending);
        freed->pending = next;
    }
    rollcall_free(&freed->client);
    rollcall_api_free(&freed->api);
    free(freed->name);
    free(freed->token_file);
    free(freed);
}
