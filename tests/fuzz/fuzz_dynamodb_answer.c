/*
 * Answers of DynamoDB. An item that is accepted is JSON by jansson's judgement, too, and has the texts that jansson finds; its
 * attributes, written as texts and read again, have the same names and bytes. A condition is never reported as failed, a transaction as conflicting, or a call as
 * throttled unless the answer names it.
 *
 * Input: one byte, then the answer. The byte 0 asks for an item, any other chooses an HTTP status.
 */
#include "fuzz.h"
#include "fuzz_dynamodb_oracle.h"
#include "fuzz_json_oracle.h"
#include "ledger/dynamodb/client/dynamodb_error.h"
#include "ledger/dynamodb/client/dynamodb_item.h"

static struct clock clock_now;
static struct ledger_client ledger_client = {.clock = &clock_now};
static struct dynamodb_client client = {.table_prefix = ""};

/* ---- items ---- */

static bool read_item(struct dynamodb_task *task, char *text, size_t size,
                      struct dynamodb_item *item)
{
    struct json json;
    json_init(&json, text, size);
    dynamodb_read_item(task, &json, item);
    return json_done(&json);
}

static void write_attributes(struct buffer *out, const struct dynamodb_item *item)
{
    json_write_object(out);
    for (size_t i = 0; i < item->count; i++) {
        json_write_key(out, item->attributes[i].name);
        json_write_object(out);
        json_write_key_string(out, SLICE("S"), item->attributes[i].text);
        json_write_object_end(out);
    }
    json_write_object_end(out);
}

static void check_same(const struct dynamodb_item *a, const struct dynamodb_item *b)
{
    fuzz_require(a->count == b->count, "all attributes are read again");
    for (size_t i = 0; i < a->count; i++)
        fuzz_require(slice_equal(a->attributes[i].name, b->attributes[i].name) &&
                         slice_equal(a->attributes[i].text, b->attributes[i].text),
                     "an attribute is as it was written");
}

static bool is_last_of_its_name(const struct dynamodb_item *item, size_t at)
{
    for (size_t i = at + 1; i < item->count; i++)
        if (slice_equal(item->attributes[i].name, item->attributes[at].name))
            return false;
    return true;
}

static void check_texts(const struct dynamodb_item *item, struct slice answer)
{
    for (size_t i = 0; i < item->count; i++)
        if (is_last_of_its_name(item, i))
            fuzz_require(
                fuzz_dynamodb_may_have(answer, item->attributes[i].name, item->attributes[i].text),
                "a text is the one in the answer");
}

static void check_item(const char *answer, size_t size)
{
    struct ledger_request *request = ledger_request_make(&ledger_client, LEDGER_SETTINGS_GET, NULL);
    struct dynamodb_task task = {.client = &client, .request = request};
    char *copy = fuzz_copy(answer, size);
    struct dynamodb_item item, again;
    struct buffer written = BUFFER_INIT;
    if (read_item(&task, copy, size, &item)) {
        fuzz_require(fuzz_json_judge((struct slice){answer, size}) != FUZZ_JSON_REFUSED,
                     "an accepted item is JSON");
        check_texts(&item, (struct slice){answer, size});
        dynamodb_item_number(&item, "sequence_counter");
        write_attributes(&written, &item);
        fuzz_require(read_item(&task, written.data, written.len, &again), "it can be read again");
        check_same(&item, &again);
    }
    buffer_free(&written);
    free(copy);
    ledger_request_free(request);
}

/* ---- errors ---- */

static bool has_bytes(const char *answer, size_t size, const char *text)
{
    return memmem(answer, size, text, strlen(text)) != NULL;
}

/* A name that is written with escapes is not searched for. */
static void check_error(unsigned status, const char *answer, size_t size)
{
    char name[DYNAMODB_ERROR_NAME_MAX];
    char *copy = fuzz_copy(answer, size);
    enum dynamodb_error error = dynamodb_error_of(status, (struct slice){copy, size}, name);
    bool has_escapes = has_bytes(answer, size, "\\");
    fuzz_require(memcmp(copy, answer, size) == 0, "the answer is not changed");
    fuzz_require(strlen(name) < DYNAMODB_ERROR_NAME_MAX, "the name is bounded");
    fuzz_require((error == DYNAMODB_ERROR_NONE) == (status == 200), "only 200 is success");
    if (error == DYNAMODB_ERROR_CONDITION && !has_escapes)
        fuzz_require(has_bytes(answer, size, "ConditionalCheckFailed"), "a condition is named");
    if (error == DYNAMODB_ERROR_CONFLICT && !has_escapes)
        fuzz_require(has_bytes(answer, size, "Conflict") ||
                         has_bytes(answer, size, "TransactionInProgress"),
                     "a conflict is named");
    if (error == DYNAMODB_ERROR_THROTTLED && !has_escapes)
        fuzz_require(has_bytes(answer, size, "Throttl") || has_bytes(answer, size, "Exceeded"),
                     "throttling is named");
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned statuses[] = {0, 200, 400, 403, 500, 502, 503};
    if (size == 0)
        return 0;
    if (data[0] == 0)
        check_item((const char *)data + 1, size - 1);
    else
        check_error(statuses[data[0] % (sizeof(statuses) / sizeof(statuses[0]))],
                    (const char *)data + 1, size - 1);
    return 0;
}
