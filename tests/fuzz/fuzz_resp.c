/*
 * Compares the RESP parser with a reader that is obviously right: it descends into a reply and only finds its
 * end. Also: any split gives the same result, a refusal is final, and a written command reads back as the same
 * arguments.
 *
 * Input: a byte of split seed, then the bytes of the server.
 */
#include "fuzz.h"
#include "redis/protocol/resp.h"

enum outcome { ENDS = RESP_COMPLETE, MORE = RESP_INCOMPLETE, NONSENSE = RESP_INVALID };

struct reference {
    struct slice input;
    size_t at;
    size_t values;
};

static enum outcome reference_line(struct reference *reader, struct slice *line)
{
    struct slice rest = slice_after(reader->input, reader->at);
    for (size_t i = 0; i < rest.len && i < RESP_LINE_BYTES_MAX; i++) {
        if (rest.data[i] != '\r')
            continue;
        if (i + 1 == rest.len)
            return MORE;
        *line = (struct slice){rest.data, i};
        reader->at += i + 2;
        return rest.data[i + 1] == '\n' && i > 0 ? ENDS : NONSENSE;
    }
    return rest.len >= RESP_LINE_BYTES_MAX ? NONSENSE : MORE;
}

static enum outcome reference_bulk(struct reference *reader, int64_t len)
{
    if (len < 0 || len > RESP_TEXT_BYTES_MAX)
        return NONSENSE;
    size_t end = reader->at + (size_t)len;
    if (reader->input.len < end + 2)
        return MORE;
    reader->at = end + 2;
    return slice_is((struct slice){reader->input.data + end, 2}, "\r\n") ? ENDS : NONSENSE;
}

static enum outcome reference_value(struct reference *reader, unsigned depth);

static enum outcome reference_items(struct reference *reader, int64_t count, unsigned depth)
{
    if (count < 0 || depth == RESP_DEPTH_MAX || (size_t)count > RESP_VALUES_MAX - reader->values)
        return NONSENSE;
    reader->values += (size_t)count;
    enum outcome outcome = ENDS;
    for (int64_t i = 0; i < count && outcome == ENDS; i++)
        outcome = reference_value(reader, depth + 1);
    return outcome;
}

static enum outcome reference_sized(struct reference *reader, char type, struct slice size,
                                    unsigned depth)
{
    int64_t count;
    if (!resp_parse_integer(size, &count) || count > RESP_TEXT_BYTES_MAX)
        return NONSENSE;
    if (count == -1 && (type == '$' || type == '*'))
        return ENDS;
    if (type == '$' || type == '=' || type == '!')
        return reference_bulk(reader, count);
    if (type == '>' && depth > 0)
        return NONSENSE;
    return reference_items(reader, type == '%' ? count * 2 : count, depth);
}

static enum outcome reference_value(struct reference *reader, unsigned depth)
{
    struct slice line;
    int64_t number;
    enum outcome outcome = reference_line(reader, &line);
    if (outcome != ENDS)
        return outcome;
    struct slice rest = slice_after(line, 1);
    switch (line.data[0]) {
    case '+':
    case '-':
    case ',':
    case '(':
        return ENDS;
    case '_':
        return rest.len == 0 ? ENDS : NONSENSE;
    case '#':
        return slice_is(rest, "t") || slice_is(rest, "f") ? ENDS : NONSENSE;
    case ':':
        return resp_parse_integer(rest, &number) ? ENDS : NONSENSE;
    default:
        return line.data[0] && strchr("$=!*~%>", line.data[0])
                   ? reference_sized(reader, line.data[0], rest, depth)
                   : NONSENSE;
    }
}

/* Checks that every text lies in the input and every item is readable. */
static void check_value(const struct resp_value *value, struct slice input)
{
    if (value->type == RESP_TEXT || value->type == RESP_ERROR)
        fuzz_require(value->text.data >= input.data &&
                         value->text.data + value->text.len <= input.data + input.len,
                     "a text lies in the input");
    if (value->type == RESP_ARRAY || value->type == RESP_PUSH)
        for (size_t i = 0; i < value->count; i++)
            check_value(&value->items[i], input);
}

static void check_split(struct slice input, uint32_t seed, enum outcome expected, size_t end)
{
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len = 0;
    enum resp_result result = RESP_INCOMPLETE;
    for (size_t known = 0; result == RESP_INCOMPLETE && known < input.len;) {
        known += fuzz_piece(&seed, input.len - known);
        result = resp_parse(&parser, slice_first(input, known), &reply, &len);
    }
    fuzz_require(result == (enum resp_result)expected, "a split changes nothing");
    fuzz_require(expected != ENDS || len == end, "a split moves no end");
    resp_parser_free(&parser);
}

static void check_command(struct slice input, uint32_t seed)
{
    struct buffer out = BUFFER_INIT;
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    struct slice arguments[8];
    size_t count = 0;
    size_t len;
    for (size_t at = 0; at < input.len && count < 8; at += arguments[count++].len)
        arguments[count] = (struct slice){input.data + at, fuzz_piece(&seed, input.len - at)};
    resp_write_command(&out, arguments, count);
    fuzz_require(resp_parse(&parser, buffer_slice(&out), &reply, &len) == RESP_COMPLETE &&
                     len == out.len && reply->count == count,
                 "a command is one array");
    for (size_t i = 0; i < count; i++)
        fuzz_require(slice_equal(reply->items[i].text, arguments[i]), "an argument stays itself");
    buffer_free(&out);
    resp_parser_free(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct slice input = {(const char *)data + 1, size - 1};
    struct reference reader = {.input = input, .values = 1};
    struct resp_parser parser = {0};
    const struct resp_value *reply;
    size_t len = 0;
    enum outcome expected = reference_value(&reader, 0);
    enum resp_result result = resp_parse(&parser, input, &reply, &len);
    fuzz_require(result == (enum resp_result)expected, "the reference agrees");
    if (result == RESP_COMPLETE) {
        fuzz_require(len == reader.at, "the reference ends there");
        check_value(reply, input);
    }
    resp_parser_free(&parser);
    check_split(input, data[0], expected, reader.at);
    check_command(input, data[0]);
    return 0;
}
