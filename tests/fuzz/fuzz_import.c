/*
 * The lines of an import: the same lines are found, with the same numbers, however the bytes are cut into pieces; a reader that
 * looks for the ends of lines in the whole text finds them too. What a line says is within the bounds of ids.
 * The first byte of an input is the length of the pieces.
 */
#include "api/service/import_line.h"
#include "auth/user_id.h"
#include "fuzz.h"

#include <stdlib.h>

enum { LINE_BYTES_MAX = 256 };

/* Finds the line of a number in the whole text. */
static struct slice oracle_line(struct slice text, uint64_t number)
{
    struct slice line = {text.data, 0};
    const char *end = text.data + text.len;
    for (uint64_t at = 1;; at++) {
        const char *stop = memchr(line.data, '\n', (size_t)(end - line.data));
        line.len = (size_t)((stop ? stop : end) - line.data);
        if (at == number || !stop)
            return line;
        line.data = stop + 1;
    }
}

static void check_line(struct slice text)
{
    struct fields_scratch scratch;
    struct import_line line;
    struct import_user user;
    struct import_chat chat;
    if (import_line_read(text, &line))
        return;
    if (line.kind == IMPORT_CONTACT || line.kind == IMPORT_BLOCK) {
        fuzz_require(user_id_valid(line.pair[0]) && user_id_valid(line.pair[1]) &&
                         !slice_equal(line.pair[0], line.pair[1]),
                     "a pair is two users");
    } else if (line.kind == IMPORT_USER) {
        if (!import_line_read_user(line.object, &scratch, &user))
            fuzz_require(user_id_valid(user.user_id), "a user has an id");
    } else if (!import_line_read_chat(line.object, &scratch, &chat)) {
        fuzz_require(chat.member_count > 0 && user_id_valid(chat.members[0]),
                     "a chat has a member");
        free(chat.members);
    }
}

static void check_pieces(struct slice text, size_t piece_len)
{
    struct import_lines lines;
    struct slice line;
    uint64_t number = 0;
    import_lines_init(&lines, LINE_BYTES_MAX);
    for (size_t at = 0; at <= text.len; at += piece_len) {
        bool is_last = text.len - at < piece_len || piece_len == 0;
        enum import_lines_result result;
        import_lines_add(&lines,
                         (struct slice){text.data + at, is_last ? text.len - at : piece_len});
        while ((result = import_lines_next(&lines, is_last, &line)) != IMPORT_LINES_NEED_MORE) {
            struct slice expected = oracle_line(text, ++number);
            fuzz_require(lines.line == number, "lines are counted");
            fuzz_require((result == IMPORT_LINES_TOO_LONG) == (expected.len > LINE_BYTES_MAX),
                         "only long lines are refused");
            if (result == IMPORT_LINES_TOO_LONG)
                continue;
            fuzz_require(slice_equal(line, expected), "the line is that of the text");
            check_line(line);
        }
        if (is_last)
            break;
    }
    fuzz_require(!lines.buffer.failed, "the buffer suffices");
    import_lines_free(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct slice text = {(const char *)data + 1, size - 1};
    check_pieces(text, (size_t)data[0] + 1);
    check_pieces(text, size);
    return 0;
}
