#include "scenario.h"

#include "text/json.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024, CLIENTS_MAX = 256 };

/* ---- commands ---- */

enum member_kind { MEMBER_TEXT, MEMBER_RAW, MEMBER_INT, MEMBER_BOOL };

static const struct {
    const char *name;
    enum member_kind kind;
    size_t offset;
} MEMBERS[] = {
#define MEMBER(json_name, kind, field)                                                             \
    {                                                                                              \
        json_name, kind, offsetof(struct scenario_command, field)                                  \
    }
    MEMBER("id", MEMBER_INT, id),
    MEMBER("client", MEMBER_TEXT, client),
    MEMBER("do", MEMBER_TEXT, operation),
    MEMBER("args", MEMBER_RAW, args),
    MEMBER("url", MEMBER_TEXT, url),
    MEMBER("token_file", MEMBER_TEXT, token_file),
    MEMBER("device_id", MEMBER_TEXT, device_id),
    MEMBER("chat_id", MEMBER_TEXT, chat_id),
    MEMBER("user_id", MEMBER_TEXT, user_id),
    MEMBER("body", MEMBER_TEXT, body),
    MEMBER("client_message_id", MEMBER_TEXT, client_message_id),
    MEMBER("to", MEMBER_TEXT, to),
    MEMBER("call_id", MEMBER_TEXT, call_id),
    MEMBER("request_id", MEMBER_TEXT, request_id),
    MEMBER("name", MEMBER_TEXT, name),
    MEMBER("user_ids", MEMBER_RAW, user_ids),
    MEMBER("members", MEMBER_RAW, members),
    MEMBER("data", MEMBER_RAW, data),
    MEMBER("after_sequence", MEMBER_INT, after_sequence),
    MEMBER("before_sequence", MEMBER_INT, before_sequence),
    MEMBER("sequence", MEMBER_INT, sequence),
    MEMBER("limit", MEMBER_INT, limit),
    MEMBER("typing", MEMBER_BOOL, typing),
#undef MEMBER
};

static bool read_value(struct json *json, enum member_kind kind, void *out)
{
    switch (kind) {
    case MEMBER_TEXT:
        return json_string(json, out);
    case MEMBER_RAW:
        return json_raw(json, out);
    case MEMBER_INT:
        return json_int(json, out);
    case MEMBER_BOOL:
        return json_bool(json, out);
    }
    return false;
}

static bool read_members(struct slice text, struct scenario_command *command)
{
    struct json json;
    struct slice key;
    json_init(&json, (char *)text.data, text.len);
    json_object(&json);
    while (json_member(&json, &key)) {
        size_t i = 0;
        while (i < sizeof(MEMBERS) / sizeof(MEMBERS[0]) && !slice_is(key, MEMBERS[i].name))
            i++;
        if (i == sizeof(MEMBERS) / sizeof(MEMBERS[0]))
            json_skip(&json);
        else
            read_value(&json, MEMBERS[i].kind, (char *)command + MEMBERS[i].offset);
    }
    return json_done(&json);
}

static void perform_line(struct scenario_client **clients, struct slice line)
{
    struct scenario_command command = {.after_sequence = -1};
    if (!read_members(line, &command) || !read_members(command.args, &command)) {
        fprintf(stderr, "scenario: a line is not a command\n");
        exit(2);
    }
    struct scenario_client *at = *clients;
    while (at && !slice_is(command.client, at->name))
        at = at->next;
    struct scenario_client *client = scenario_perform(at, &command);
    if (client == at)
        return;
    client->next = *clients;
    *clients = client;
}

/* ---- the loop ---- */

/* Returns false at the end of the input. */
static bool read_lines(struct buffer *input, struct scenario_client **clients)
{
    char data[READ_BYTES];
    ssize_t got = read(STDIN_FILENO, data, sizeof(data));
    if (got <= 0)
        return false;
    buffer_append(input, data, (size_t)got);
    if (input->failed)
        abort();
    char *end;
    while ((end = memchr(input->data, '\n', input->len)) != NULL) {
        size_t len = (size_t)(end - input->data);
        perform_line(clients, (struct slice){input->data, len});
        buffer_consume(input, len + 1);
    }
    return true;
}

static void shorten(int *wait_ms, int other_ms)
{
    if (other_ms >= 0 && (*wait_ms < 0 || other_ms < *wait_ms))
        *wait_ms = other_ms;
}

/* Waits until something happens and processes all clients. Returns whether there is input. */
static bool run_once(struct scenario_client *clients)
{
    struct pollfd fds[1 + 2 * CLIENTS_MAX] = {{.fd = STDIN_FILENO, .events = POLLIN}};
    nfds_t count = 1;
    int wait_ms = -1;
    for (const struct scenario_client *at = clients; at && count < 2 * CLIENTS_MAX; at = at->next) {
        fds[count++] = (struct pollfd){.fd = rollcall_fd(at->client),
                                       .events = rollcall_poll_events(at->client)};
        fds[count++] = (struct pollfd){.fd = rollcall_api_fd(at->api),
                                       .events = rollcall_api_poll_events(at->api)};
        shorten(&wait_ms, rollcall_wait_ms(at->client));
        shorten(&wait_ms, rollcall_api_wait_ms(at->api));
    }
    poll(fds, count, wait_ms);
    count = 1;
    for (struct scenario_client *at = clients; at; at = at->next) {
        rollcall_process(at->client, fds[count++].revents);
        rollcall_api_process(at->api, fds[count++].revents);
    }
    return fds[0].revents != 0;
}

int main(void)
{
    struct scenario_client *clients = NULL;
    struct buffer input = BUFFER_INIT;
    printf("{\"hello\":{\"name\":\"C\"}}\n");
    fflush(stdout);
    while (!run_once(clients) || read_lines(&input, &clients))
        continue;
    while (clients) {
        struct scenario_client *next = clients->next;
        scenario_client_free(&clients);
        clients = next;
    }
    buffer_free(&input);
    return 0;
}
