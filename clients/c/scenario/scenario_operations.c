#include "scenario.h"

#include "text/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 256 };

/* Terminates a slice of the command, which the caller's buffer holds. */
static const char *text_of(char text[TEXT_BYTES], struct slice slice)
{
    snprintf(text, TEXT_BYTES, "%.*s", SLICE_FORMAT(slice));
    return text;
}

/* ---- over the socket ---- */

typedef void operation(struct scenario_client *client, const struct scenario_command *command);

static void answer_at_once(const struct scenario_command *command, bool done)
{
    if (done)
        scenario_print_result(command->id, SLICE_NONE);
    else
        scenario_print_error(command->id, "DISCONNECTED", "the library refused the command");
}

static void do_close(struct scenario_client *client, const struct scenario_command *command)
{
    if (rollcall_get_state(client->client) == ROLLCALL_STOPPED) {
        answer_at_once(command, true);
        return;
    }
    scenario_client_await(client, command->id, "close", "");
    rollcall_close(client->client);
}

static void do_subscribe_presence(struct scenario_client *client,
                                  const struct scenario_command *command)
{
    struct json json;
    struct slice user;
    char text[TEXT_BYTES];
    bool done = true;
    json_init(&json, (char *)command->user_ids.data, command->user_ids.len);
    json_array(&json);
    while (json_element(&json) && json_string(&json, &user))
        done &= rollcall_subscribe(client->client, text_of(text, user));
    answer_at_once(command, done);
}

static void do_open_chat(struct scenario_client *client, const struct scenario_command *command)
{
    char chat[TEXT_BYTES];
    text_of(chat, command->chat_id);
    struct pending_answer *pending = scenario_client_await(client, command->id, "open", chat);
    pending->follows = command->after_sequence < 0;
    if (!pending->follows)
        rollcall_follow(client->client, chat, command->after_sequence);
    rollcall_open_chat(client->client, chat);
}

static void do_close_chat(struct scenario_client *client, const struct scenario_command *command)
{
    char chat[TEXT_BYTES];
    answer_at_once(command, rollcall_close_chat(client->client, text_of(chat, command->chat_id)));
}

static void do_send_message(struct scenario_client *client, const struct scenario_command *command)
{
    char chat[TEXT_BYTES], id[TEXT_BYTES];
    char *body = scenario_copy(command->body);
    text_of(id, command->client_message_id);
    if (rollcall_send(client->client, text_of(chat, command->chat_id), id, body))
        scenario_client_await(client, command->id, "sent", id);
    else
        scenario_print_error(command->id, "CLOSED", "the message was not accepted");
    free(body);
}

static void do_typing(struct scenario_client *client, const struct scenario_command *command)
{
    char chat[TEXT_BYTES];
    answer_at_once(
        command, rollcall_typing(client->client, text_of(chat, command->chat_id), command->typing));
}

static void do_ack(struct scenario_client *client, const struct scenario_command *command)
{
    char chat[TEXT_BYTES];
    answer_at_once(
        command, rollcall_ack(client->client, text_of(chat, command->chat_id), command->sequence));
}

static void await_call(struct scenario_client *client, const struct scenario_command *command,
                       const char *call_id, bool sent)
{
    if (sent)
        scenario_client_await(client, command->id, "call", call_id);
    else
        answer_at_once(command, false);
}

static void do_request_call(struct scenario_client *client, const struct scenario_command *command)
{
    char to[TEXT_BYTES], call_id[TEXT_BYTES];
    snprintf(call_id, sizeof(call_id), "%s-%lld", client->name, (long long)command->id);
    bool sent = rollcall_call_request(client->client, text_of(to, command->to), call_id);
    await_call(client, command, call_id, sent);
}

static void do_accept_call(struct scenario_client *client, const struct scenario_command *command)
{
    char call_id[TEXT_BYTES];
    text_of(call_id, command->call_id);
    await_call(client, command, call_id, rollcall_call_accept(client->client, call_id));
}

static void do_reject_call(struct scenario_client *client, const struct scenario_command *command)
{
    char call_id[TEXT_BYTES];
    text_of(call_id, command->call_id);
    await_call(client, command, call_id, rollcall_call_reject(client->client, call_id));
}

static void do_end_call(struct scenario_client *client, const struct scenario_command *command)
{
    char call_id[TEXT_BYTES];
    text_of(call_id, command->call_id);
    await_call(client, command, call_id, rollcall_call_end(client->client, call_id));
}

static void do_signal(struct scenario_client *client, const struct scenario_command *command)
{
    char call_id[TEXT_BYTES];
    char *data = scenario_copy(command->data);
    bool sent = rollcall_call_signal(client->client, text_of(call_id, command->call_id), data);
    free(data);
    answer_at_once(command, sent);
}

static void do_send_event(struct scenario_client *client, const struct scenario_command *command)
{
    char name[TEXT_BYTES], id[TEXT_BYTES];
    char *data = scenario_copy(command->data);
    snprintf(id, sizeof(id), "event-%lld", (long long)command->id);
    if (rollcall_send_event(client->client, id, text_of(name, command->name), data))
        scenario_client_await(client, command->id, "event", id);
    else
        answer_at_once(command, false);
    free(data);
}

static const struct {
    const char *name;
    operation *perform;
} OPERATIONS[] = {
    {"close", do_close},
    {"subscribe_presence", do_subscribe_presence},
    {"open_chat", do_open_chat},
    {"close_chat", do_close_chat},
    {"send_message", do_send_message},
    {"typing", do_typing},
    {"ack", do_ack},
    {"request_call", do_request_call},
    {"accept_call", do_accept_call},
    {"reject_call", do_reject_call},
    {"end_call", do_end_call},
    {"signal", do_signal},
    {"send_event", do_send_event},
};

/* ---- over HTTP ---- */

static void on_api_answer(void *arg, const struct rollcall_api_answer *answer)
{
    int64_t *id = arg;
    if (answer->code[0])
        scenario_print_error(*id, answer->code, answer->text);
    else
        scenario_print_result(*id, (struct slice){answer->json, answer->json_len});
    free(id);
}

/* The places of a pattern are named in place_value(). */
static const struct {
    const char *name;
    const char *method;
    const char *pattern;
} REQUESTS[] = {
    {"request_contact", "POST", "/v1/contact-requests"},
    {"contact_requests", "GET", "/v1/contact-requests"},
    {"accept_contact", "POST", "/v1/contact-requests/{request}/accept"},
    {"remove_contact", "DELETE", "/v1/contacts/{user}"},
    {"friends", "GET", "/v1/friends"},
    {"block", "PUT", "/v1/blocks/{user}"},
    {"create_chat", "POST", "/v1/chats"},
    {"direct_chat", "POST", "/v1/chats"},
    {"chat", "GET", "/v1/chats/{chat}"},
    {"history", "GET", "/v1/chats/{chat}/messages?before_sequence={before}&limit={limit}"},
    {"mark_read", "POST", "/v1/chats/{chat}/read"},
    {"remove_member", "DELETE", "/v1/chats/{chat}/members/{user}"},
};

/* Returns the value of a named place in a pattern. */
static const char *place_value(char text[TEXT_BYTES], const struct scenario_command *command,
                               struct slice name)
{
    if (slice_is(name, "request"))
        return text_of(text, command->request_id);
    if (slice_is(name, "user"))
        return text_of(text, command->user_id);
    if (slice_is(name, "chat"))
        return text_of(text, command->chat_id);
    int64_t number = slice_is(name, "before") ? command->before_sequence : command->limit;
    snprintf(text, TEXT_BYTES, "%lld", (long long)number);
    return text;
}

static void write_path(char path[ROLLCALL_API_PATH_BYTES], const char *pattern,
                       const struct scenario_command *command)
{
    struct slice rest = slice_of(pattern), plain, name;
    char piece[ROLLCALL_API_PATH_BYTES], value[TEXT_BYTES];
    size_t len = 0;
    while (rest.len > 0) {
        rest = slice_split(rest, '{', &plain);
        piece[0] = '\0';
        if (rest.data) {
            rest = slice_split(rest, '}', &name);
            rollcall_api_path(piece, "{}", place_value(value, command, name));
        }
        len += (size_t)snprintf(path + len, ROLLCALL_API_PATH_BYTES - len, "%.*s%s",
                                SLICE_FORMAT(plain), piece);
    }
}

/* Returns the body of a request, or NULL; the caller frees it. */
static char *write_body(const struct scenario_command *command)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    if (slice_is(command->operation, "request_contact"))
        json_write_key_string(&json, SLICE("to"), command->user_id);
    else if (slice_is(command->operation, "direct_chat"))
        json_write_key_string(&json, SLICE("direct_with"), command->user_id);
    else if (slice_is(command->operation, "mark_read"))
        json_write_key_int(&json, SLICE("sequence"), command->sequence);
    else if (slice_is(command->operation, "create_chat")) {
        json_write_key_string(&json, SLICE("chat_id"), command->chat_id);
        json_write_key(&json, SLICE("members"));
        json_write_raw(&json, command->members);
    } else {
        buffer_free(&json);
        return NULL;
    }
    json_write_object_end(&json);
    buffer_append_byte(&json, '\0');
    return json.failed ? NULL : buffer_detach(&json, &(size_t){0});
}

static void send_request(struct scenario_client *client, const struct scenario_command *command,
                         const char *method, const char *pattern)
{
    char path[ROLLCALL_API_PATH_BYTES];
    int64_t *id = malloc(sizeof(*id));
    char *body = write_body(command);
    if (!id)
        abort();
    *id = command->id;
    write_path(path, pattern, command);
    if (!rollcall_api_request(client->api, method, path, body, on_api_answer, id)) {
        scenario_print_error(command->id, "BUG", "the library refused the request");
        free(id);
    }
    free(body);
}

struct scenario_client *scenario_perform(struct scenario_client *client,
                                         const struct scenario_command *command)
{
    if (slice_is(command->operation, "open")) {
        struct scenario_client *opened = scenario_client_open(command);
        scenario_print_result(command->id, SLICE_NONE);
        return opened;
    }
    for (size_t i = 0; client && i < sizeof(OPERATIONS) / sizeof(OPERATIONS[0]); i++) {
        if (slice_is(command->operation, OPERATIONS[i].name)) {
            OPERATIONS[i].perform(client, command);
            return client;
        }
    }
    for (size_t i = 0; client && i < sizeof(REQUESTS) / sizeof(REQUESTS[0]); i++) {
        if (slice_is(command->operation, REQUESTS[i].name)) {
            send_request(client, command, REQUESTS[i].method, REQUESTS[i].pattern);
            return client;
        }
    }
    scenario_print_error(command->id, "BUG", "there is no such operation or client");
    return client;
}
