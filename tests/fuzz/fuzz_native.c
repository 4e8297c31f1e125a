/*
 * Compares the decoder of native messages with jansson. Whatever we accept is an object to jansson, with the
 * type, id and fields that we read. Whatever we refuse has a reason, which jansson does not contradict where it
 * can check it. In both cases an id that was read is the client's, and a reply that echoes it is an object with
 * that id.
 *
 * Texts beyond jansson's limits (fuzz_json_oracle.h) are decoded and answered, but not compared.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "fuzz_native_oracle.h"
#include "protocol/dialect.h"

/* The bounds of protocol/native.c and of text/json.h. */
enum { ID_BYTES_MAX = 256, DATA_DEPTH_MAX = 30 };

static const struct dialect *const native = &DIALECT_TABLE_NATIVE;

/* An optional field may be left out or be null. */
static bool is_left_out(struct slice text, const char *key)
{
    return !fuzz_native_has(text, key) || fuzz_native_is_value(text, key, SLICE("null"));
}

static void check_activity(struct slice text, enum activity activity)
{
    switch (activity) {
    case ACTIVITY_UNSPECIFIED:
        fuzz_require(is_left_out(text, "active"), "activity that is given is read");
        break;
    case ACTIVITY_ACTIVE:
        fuzz_require(fuzz_native_is_value(text, "active", SLICE("true")), "active is true");
        break;
    case ACTIVITY_IDLE:
        fuzz_require(fuzz_native_is_value(text, "active", SLICE("false")), "idle is false");
        break;
    }
}

static void check_string(struct slice text, const char *key, struct slice value)
{
    fuzz_require(value.data && fuzz_native_is_string(text, key, value), key);
}

static void check_count(struct slice text, const char *key, int64_t value)
{
    struct buffer number = BUFFER_INIT;
    buffer_append_int(&number, value);
    fuzz_require(fuzz_native_is_value(text, key, buffer_slice(&number)), key);
    buffer_free(&number);
}

static void check_call(struct slice text, const struct message *message)
{
    const struct call_fields *call = &message->call;
    if (message->type == MESSAGE_CALL_REQUEST)
        check_string(text, "to", call->to);
    if (message->type == MESSAGE_CALL_SIGNAL)
        fuzz_require(fuzz_native_is_value(text, "data", call->data) &&
                         fuzz_native_depth(text, "data") <= DATA_DEPTH_MAX,
                     "data is unchanged and can be passed on");
    if (call->call_id.data || message->type != MESSAGE_CALL_REQUEST)
        check_string(text, "call_id", call->call_id);
    else
        fuzz_require(is_left_out(text, "call_id"), "a call id that was given is read");
}

static void check_event(struct slice text, const struct custom_event *event)
{
    if (event->name.data)
        check_string(text, "name", event->name);
    fuzz_require((event->data.data != NULL) == fuzz_native_has(text, "data"),
                 "data is read where there is some");
    fuzz_require(slice_equal(event->data, event->args), "data is the only argument");
}

static void check_chat(struct slice text, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_SEND_MESSAGE:
        check_string(text, "chat_id", message->send.chat_id);
        check_string(text, "client_message_id", message->send.client_message_id);
        check_string(text, "body", message->send.body);
        break;
    case MESSAGE_ACK:
        check_string(text, "chat_id", message->ack.chat_id);
        check_count(text, "sequence", message->ack.sequence);
        break;
    case MESSAGE_SYNC_REQUEST:
        check_string(text, "chat_id", message->sync.chat_id);
        check_count(text, "after_sequence", message->sync.after_sequence);
        if (message->sync.limit || !is_left_out(text, "limit"))
            check_count(text, "limit", message->sync.limit);
        break;
    default:
        check_string(text, "chat_id", message->chat_id);
        break;
    }
}

static void check_fields(struct slice text, const struct message *message)
{
    switch (message->type) {
    case MESSAGE_HEARTBEAT:
        check_activity(text, message->heartbeat);
        break;
    case MESSAGE_SUBSCRIBE_PRESENCE:
    case MESSAGE_UNSUBSCRIBE_PRESENCE:
    case MESSAGE_QUERY_PRESENCE:
        fuzz_require(
            fuzz_native_is_list(text, "user_ids", message->users.ids, message->users.count),
            "users are those of the list");
        break;
    case MESSAGE_CALL_REQUEST:
    case MESSAGE_CALL_ACCEPT:
    case MESSAGE_CALL_REJECT:
    case MESSAGE_CALL_END:
    case MESSAGE_CALL_SIGNAL:
        check_call(text, message);
        break;
    case MESSAGE_REFRESH_TOKEN:
        check_string(text, "token", message->token);
        break;
    case MESSAGE_EVENT:
        check_event(text, &message->event);
        break;
    default:
        check_chat(text, message);
        break;
    }
}

static void check_accepted(struct slice text, const struct message *message)
{
    fuzz_require(message->type != MESSAGE_INVALID, "an accepted message has a type");
    fuzz_require(fuzz_native_is_object(text), "jansson sees an object");
    fuzz_require(fuzz_native_is_string(text, "type", slice_of(message_type_name(message->type))),
                 "the type is the one in the text");
    fuzz_require((message->id.data != NULL) == fuzz_native_has(text, "id"),
                 "an id is read where there is one");
    check_fields(text, message);
}

static void check_refused(struct slice text, const struct message *message, const char *problem)
{
    fuzz_require(problem && problem[0], "a refusal has a reason");
    if (strcmp(problem, "type must be a string") == 0)
        fuzz_require(!fuzz_native_is_string(text, "type", SLICE_NONE), "type is no string");
    if (strcmp(problem, "data is missing or nested too deep") == 0)
        fuzz_require(!fuzz_native_has(text, "data") ||
                         fuzz_native_depth(text, "data") > DATA_DEPTH_MAX,
                     "data that can be passed on is accepted");
    if (strcmp(problem, "unknown type") == 0)
        fuzz_require(message->type == MESSAGE_INVALID, "only an unknown type is reported as one");
    for (int type = MESSAGE_HEARTBEAT; type < MESSAGE_USER_CONNECT; type++)
        if (strcmp(problem, "unknown type") == 0)
            fuzz_require(!fuzz_native_is_string(
                             text, "type", slice_of(message_type_name((enum message_type)type))),
                         "a type that exists is known");
}

/* Checks that a reply is JSON and echoes the client's id. */
static void check_reply(struct slice text, struct message *reply, bool comparable)
{
    struct buffer out = BUFFER_INIT;
    native->encode(reply, &out);
    struct slice written = buffer_slice(&out);
    if (comparable) {
        fuzz_require(
            fuzz_native_is_string(written, "type", slice_of(message_type_name(reply->type))),
            "a reply has its type");
        fuzz_require((reply->id.data != NULL) == fuzz_native_has(written, "id"),
                     "an id is echoed if there was one");
        fuzz_require(!reply->id.data || fuzz_native_is_value(text, "id", reply->id),
                     "the id is the client's");
        fuzz_require(!reply->id.data || fuzz_native_is_value(written, "id", reply->id),
                     "the id is echoed unchanged");
    }
    struct json json;
    json_init(&json, out.data, out.len);
    fuzz_require(json_skip(&json) && json_done(&json), "a reply is JSON");
    buffer_free(&out);
}

static void check_replies(struct slice text, const struct message *message, const char *problem,
                          bool comparable)
{
    struct message error = {.type = MESSAGE_ERROR,
                            .id = message->id,
                            .error = {.code = ERROR_INVALID_MESSAGE,
                                      .text = problem ? problem : "",
                                      .retry_after_ms = 1500,
                                      .grace_period_ms = -1}};
    struct message ack = {.type = MESSAGE_HEARTBEAT_ACK, .id = message->id, .server_time_ms = 0};
    struct message ok = {.type = MESSAGE_OK, .id = message->id};
    check_reply(text, &error, comparable);
    check_reply(text, &ack, comparable);
    check_reply(text, &ok, comparable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fields_scratch scratch; /* too large for the stack; a worker keeps one, too */
    struct slice text = {(const char *)data, size};
    struct message message;
    const char *problem = NULL;
    char *payload = fuzz_copy(data, size);
    bool comparable = fuzz_json_judge(text) == FUZZ_JSON_ACCEPTED;
    bool accepted = native->decode(&scratch, payload, size, &message, &problem);
    fuzz_require(!message.id.data || (message.id.data >= payload &&
                                      message.id.data + message.id.len <= payload + size),
                 "the id is within the payload");
    fuzz_require(message.id.len <= ID_BYTES_MAX, "ids are bounded");
    fuzz_require(!accepted || fuzz_json_judge(text) != FUZZ_JSON_REFUSED,
                 "jansson accepts what we accept");
    if (accepted && comparable)
        check_accepted(text, &message);
    else if (!accepted)
        check_refused(text, &message, problem);
    check_replies(text, &message, problem, comparable);
    free(payload);
    return 0;
}
