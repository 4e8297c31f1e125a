#include "api/service/import_line.h"

#include "api/user_ids_json.h"
#include "auth/user_id.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

#define NOT_A_LINE                                                                                 \
    "a line must be one object: {\"contact\":[a,b]}, {\"block\":[a,b]}, {\"user\":{…}} or "      \
    "{\"chat\":{…}}"

/* ---- from bytes to lines ---- */

void import_lines_init(struct import_lines *lines, size_t line_bytes_max)
{
    *lines = (struct import_lines){
        .buffer = BUFFER_BOUNDED(line_bytes_max + 2 * (size_t)IMPORT_PIECE_BYTES_MAX),
        .line_bytes_max = line_bytes_max};
}

void import_lines_free(struct import_lines *lines)
{
    buffer_free(&lines->buffer);
}

void import_lines_add(struct import_lines *lines, struct slice piece)
{
    buffer_consume(&lines->buffer, lines->at);
    lines->searched -= lines->at;
    lines->at = 0;
    buffer_append_slice(&lines->buffer, piece);
}

/* Takes the bytes up to `end`, without the `skipped` ones that follow. */
static struct slice take_line(struct import_lines *lines, size_t end, size_t skipped)
{
    struct slice line = {lines->buffer.data + lines->at, end - lines->at};
    lines->at = lines->searched = end + skipped;
    return line;
}

/* The line does not end in what has arrived so far. */
static enum import_lines_result take_unfinished_line(struct import_lines *lines, bool at_end,
                                                     struct slice *line)
{
    size_t len = lines->buffer.len - lines->at;
    lines->searched = lines->buffer.len;
    if (lines->is_skipping) {
        take_line(lines, lines->buffer.len, 0);
        return IMPORT_LINES_NEED_MORE;
    }
    if (len <= lines->line_bytes_max && (!at_end || len == 0))
        return IMPORT_LINES_NEED_MORE;
    lines->line++;
    lines->is_skipping = len > lines->line_bytes_max;
    *line = take_line(lines, lines->buffer.len, 0);
    return lines->is_skipping ? IMPORT_LINES_TOO_LONG : IMPORT_LINES_LINE;
}

enum import_lines_result import_lines_next(struct import_lines *lines, bool at_end,
                                           struct slice *line)
{
    for (;;) {
        char *data = lines->buffer.data;
        const char *end =
            data ? memchr(data + lines->searched, '\n', lines->buffer.len - lines->searched) : NULL;
        if (!end)
            return take_unfinished_line(lines, at_end, line);
        *line = take_line(lines, (size_t)(end - data), 1);
        if (lines->is_skipping) {
            lines->is_skipping = false;
            continue;
        }
        lines->line++;
        return line->len > lines->line_bytes_max ? IMPORT_LINES_TOO_LONG : IMPORT_LINES_LINE;
    }
}

/* ---- from a line to what it says ---- */

static bool find_import_kind(struct slice name, enum import_kind *kind)
{
    static const char *const names[IMPORT_KINDS] = {
        [IMPORT_CONTACT] = "contact",
        [IMPORT_BLOCK] = "block",
        [IMPORT_USER] = "user",
        [IMPORT_CHAT] = "chat",
    };
    for (unsigned i = 0; i < IMPORT_KINDS; i++)
        if (slice_is(name, names[i])) {
            *kind = (enum import_kind)i;
            return true;
        }
    return false;
}

static void read_import_pair(struct json *json, struct slice pair[2])
{
    size_t count = 0;
    json_array(json);
    for (; json_element(json); count++)
        if (count >= 2 ? !json_skip(json) : !json_string(json, &pair[count]))
            return;
    if (count != 2)
        pair[0] = SLICE_NONE;
}

const char *import_line_read(struct slice line, struct import_line *out)
{
    struct json json;
    struct slice name, extra;
    *out = (struct import_line){.kind = IMPORT_KINDS};
    json_init(&json, (char *)line.data, line.len);
    json_object(&json);
    if (!json_member(&json, &name) || !find_import_kind(name, &out->kind))
        return NOT_A_LINE;
    if (out->kind == IMPORT_CONTACT || out->kind == IMPORT_BLOCK)
        read_import_pair(&json, out->pair);
    else
        json_raw(&json, &out->object);
    bool has_more = json_member(&json, &extra);
    if (has_more || !json_done(&json))
        return NOT_A_LINE;
    if (out->object.data)
        return out->object.data[0] == '{' ? NULL : "a user or chat must be an object";
    if (!user_id_valid(out->pair[0]) || !user_id_valid(out->pair[1]))
        return "a contact or block must be two user ids: 1 to 128 bytes, no control characters";
    return slice_equal(out->pair[0], out->pair[1])
               ? "a contact or block must be two different users"
               : NULL;
}

static bool scan_import_object(struct slice object, struct fields_scratch *scratch)
{
    struct json json;
    const char *problem;
    json_init(&json, (char *)object.data, object.len);
    return fields_scan(scratch, &json, &problem) && json_done(&json);
}

const char *import_line_read_user(struct slice object, struct fields_scratch *scratch,
                                  struct import_user *out)
{
    if (!scan_import_object(object, scratch))
        return "the user has too many fields";
    if (!fields_string(fields_find(scratch, "user_id"), &out->user_id) ||
        !user_id_valid(out->user_id))
        return "user_id must be a string of 1 to 128 bytes, no control characters";
    return settings_json_read(scratch, &out->values, &out->patch);
}

const char *import_line_read_chat(struct slice object, struct fields_scratch *scratch,
                                  struct import_chat *out)
{
    static const struct user_ids_problems problems = {
        "members must be a list of user ids",
        "members must be user ids: 1 to 128 bytes, no control characters",
        "a chat has at most 10000 members",
    };
    const char *problem;
    *out = (struct import_chat){0};
    if (!scan_import_object(object, scratch))
        return "the chat has too many fields";
    if (!fields_string(fields_find(scratch, "chat_id"), &out->chat_id) ||
        !user_id_valid(out->chat_id))
        return "chat_id must be a string of 1 to 128 bytes, no control characters";
    out->members = user_ids_json_read(fields_find(scratch, "members"), LEDGER_CHAT_MEMBERS_MAX,
                                      &problems, &out->member_count, &problem);
    if (!out->members)
        return problem ? problem : "out of memory";
    if (out->member_count > 0)
        return NULL;
    free(out->members);
    out->members = NULL;
    return "a chat needs a member";
}
