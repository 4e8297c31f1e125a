/*
 * Tests what is read from answers of AWS: keys, errors and descriptions of tables.
 *
 * Keys that are accepted lie inside the answer, have no byte that could end a header line, and lie there as a plain search
 * finds them. An error's name is bounded; no answer but a status of 200 is taken for a success. A table is said to exist only
 * if the answer names its status, and then it is not called missing.
 *
 * Input: a letter, then an answer with keys as JSON (j) or XML (x), an error (e) or a description of a table (t).
 */
#include "aws/aws_key_text.h"
#include "fuzz.h"
#include "ledger/dynamodb/client/dynamodb_error.h"
#include "ledger/dynamodb/client/dynamodb_table_state.h"

static bool is_inside(struct slice part, struct slice whole)
{
    return part.len == 0 ||
           (part.data >= whole.data && part.data + part.len <= whole.data + whole.len);
}

static void require_header_text(struct slice text, struct slice whole)
{
    fuzz_require(is_inside(text, whole), "a key lies inside the answer");
    for (size_t i = 0; i < text.len; i++)
        fuzz_require(text.data[i] > ' ' && text.data[i] < 127, "a key may stand in a header");
}

static void require_usable(const struct aws_key_text *text, struct slice whole)
{
    fuzz_require(text->access_key_id.len && text->secret_access_key.len, "both keys are there");
    require_header_text(text->access_key_id, whole);
    require_header_text(text->secret_access_key, whole);
    require_header_text(text->session_token, whole);
    fuzz_require(text->ends_at_wall_ms >= 0, "keys end in our era or never");
}

static void try_json(char *data, size_t len)
{
    struct aws_key_text text;
    if (aws_key_text_read_json(data, len, &text))
        require_usable(&text, (struct slice){data, len});
}

static void try_xml(struct slice xml)
{
    struct aws_key_text text;
    if (!aws_key_text_read_xml(xml, &text))
        return;
    require_usable(&text, xml);
    fuzz_require(text.ends_at_wall_ms > 0, "keys of STS end");
    const char *name = "<AccessKeyId>";
    fuzz_require(memcmp(text.access_key_id.data - strlen(name), name, strlen(name)) == 0,
                 "the key follows its tag");
    fuzz_require(text.access_key_id.data[text.access_key_id.len] == '<',
                 "and ends at the next one");
}

static void try_error(struct slice answer)
{
    static const unsigned statuses[] = {0, 400, 403, 404, 500, 503};
    char name[DYNAMODB_ERROR_NAME_MAX];
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        fuzz_require(dynamodb_error_of(statuses[i], answer, name) != DYNAMODB_ERROR_NONE,
                     "an error is no success");
        fuzz_require(memchr(name, '\0', sizeof(name)) != NULL, "an error's name ends");
    }
    fuzz_require(dynamodb_error_of(200, answer, name) == DYNAMODB_ERROR_NONE, "200 is a success");
}

static void on_fuzz_difference(void *arg, const char *difference)
{
    bool *is_missing = arg;
    fuzz_require(strlen(difference) < DYNAMODB_DIFFERENCE_MAX, "a difference is bounded");
    *is_missing = *is_missing || strcmp(difference, "it does not exist") == 0;
}

static void try_table(struct slice answer)
{
    struct dynamodb_table_state state = {0};
    bool is_missing = false;
    char *copies[] = {fuzz_copy(answer.data, answer.len), fuzz_copy(answer.data, answer.len),
                      fuzz_copy(answer.data, answer.len)};
    bool exists = dynamodb_table_state_read_table(&state, copies[0], answer.len);
    dynamodb_table_state_read_recovery(&state, copies[1], answer.len);
    dynamodb_table_state_read_expiry(&state, copies[2], answer.len);
    dynamodb_table_state_compare(&state, &dynamodb_tables[0], on_fuzz_difference, &is_missing);
    fuzz_require(!exists || state.status[0], "a table has a status");
    fuzz_require(exists != is_missing, "a table that exists is not missing");
    for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
        free(copies[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct slice rest = {(const char *)data + 1, size - 1};
    char *copy = fuzz_copy(rest.data, rest.len);
    if (data[0] == 'j')
        try_json(copy, rest.len);
    else if (data[0] == 'x')
        try_xml((struct slice){copy, rest.len});
    else if (data[0] == 'e')
        try_error((struct slice){copy, rest.len});
    else
        try_table((struct slice){copy, rest.len});
    free(copy);
    return 0;
}
