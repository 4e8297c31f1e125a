/*
 * Native messages against jansson. Whatever is accepted is, to jansson, an object whose type, id and
 * fields are the ones we read; whatever is refused has a reason, which jansson does not contradict
 * where it can judge it. Either way the id, if one was read, is the client's, and an answer that
 * echoes it is an object with that id in it.
 *
 * Texts beyond jansson's limits (fuzz_json_oracle.h) are only decoded and answered, not compared.
 */
#include "fuzz.h"
#include "fuzz_json_oracle.h"
#include "fuzz_native_oracle.h"
#include "message/dialect.h"

/* The bound of message/native.c. */
enum { ID_BYTES_MAX = 256 };

static const struct dialect *const native = &DIALECT_TABLE_NATIVE;

static void check_activity(struct slice text, enum activity activity)
{
    switch (activity) {
    case ACTIVITY_UNSAID:
        fuzz_require(!fuzz_native_has(text, "active") ||
                         fuzz_native_is_value(text, "active", SLICE("null")),
                     "activity is unsaid where it is absent or null");
        break;
    case ACTIVITY_ACTIVE:
        fuzz_require(fuzz_native_is_value(text, "active", SLICE("true")), "active is true");
        break;
    case ACTIVITY_IDLE:
        fuzz_require(fuzz_native_is_value(text, "active", SLICE("false")), "idle is false");
        break;
    }
}

/* Fields of a message that later versions add are theirs to compare here. */
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
    case MESSAGE_REFRESH_TOKEN:
        fuzz_require(fuzz_native_is_string(text, "token", message->token), "token is as given");
        break;
    default:
        break;
    }
}

static void check_accepted(struct slice text, const struct message *message)
{
    fuzz_require(message->type != MESSAGE_INVALID, "an accepted message has a type");
    fuzz_require(fuzz_native_is_object(text), "jansson sees an object");
    fuzz_require(fuzz_native_is_string(text, "type", slice_of(message_type_name(message->type))),
                 "the type is the one that stands there");
    fuzz_require((message->id.data != NULL) == fuzz_native_has(text, "id"),
                 "an id is read where there is one");
    check_fields(text, message);
}

static void check_refused(struct slice text, const struct message *message, const char *problem)
{
    fuzz_require(problem && problem[0], "a refusal has a reason");
    if (strcmp(problem, "type must be a string") == 0)
        fuzz_require(!fuzz_native_is_string(text, "type", SLICE_NONE), "type is no string");
    if (strcmp(problem, "unknown type") == 0)
        fuzz_require(message->type == MESSAGE_INVALID, "only an unknown type is called so");
    for (int type = MESSAGE_HEARTBEAT; type < MESSAGE_CONNECTION_ESTABLISHED; type++)
        if (strcmp(problem, "unknown type") == 0)
            fuzz_require(!fuzz_native_is_string(
                             text, "type", slice_of(message_type_name((enum message_type)type))),
                         "a type that exists is known");
}

/* The id as the client wrote it, in a message it can read. */
static void check_answer(struct slice text, struct message *answer, bool comparable)
{
    struct buffer out = BUFFER_INIT;
    native->encode(answer, &out);
    struct slice written = buffer_slice(&out);
    if (comparable) {
        fuzz_require(
            fuzz_native_is_string(written, "type", slice_of(message_type_name(answer->type))),
            "an answer says what it is");
        fuzz_require((answer->id.data != NULL) == fuzz_native_has(written, "id"),
                     "an id is echoed if there was one");
        fuzz_require(!answer->id.data || fuzz_native_is_value(text, "id", answer->id),
                     "the id is the client's");
        fuzz_require(!answer->id.data || fuzz_native_is_value(written, "id", answer->id),
                     "the id is echoed as it was");
    }
    struct json json;
    json_init(&json, out.data, out.len);
    fuzz_require(json_skip(&json) && json_done(&json), "an answer is JSON");
    buffer_free(&out);
}

static void check_answers(struct slice text, const struct message *message, const char *problem,
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
    check_answer(text, &error, comparable);
    check_answer(text, &ack, comparable);
    check_answer(text, &ok, comparable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fields_scratch scratch; /* too large for a stack, and as a worker keeps it */
    struct slice text = {(const char *)data, size};
    struct message message;
    const char *problem = NULL;
    char *payload = malloc(size ? size : 1);
    fuzz_require(payload != NULL, "there is memory");
    if (size)
        memcpy(payload, data, size);

    bool comparable = fuzz_json_judge(text) == FUZZ_JSON_ACCEPTED;
    bool accepted = native->decode(&scratch, payload, size, &message, &problem);
    fuzz_require(!message.id.data || (message.id.data >= payload &&
                                      message.id.data + message.id.len <= payload + size),
                 "the id lies in the payload");
    fuzz_require(message.id.len <= ID_BYTES_MAX, "ids are bounded");
    fuzz_require(!accepted || fuzz_json_judge(text) != FUZZ_JSON_REFUSED,
                 "jansson accepts what we accept");
    if (accepted && comparable)
        check_accepted(text, &message);
    else if (!accepted)
        check_refused(text, &message, problem);
    check_answers(text, &message, problem, comparable);
    free(payload);
    return 0;
}
