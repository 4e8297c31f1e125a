/*
 * The lines of an import (NDJSON), without I/O: bytes in any pieces → lines → what a line says.
 *
 *   {"contact":["alice","bob"]}   {"block":["alice","mallory"]}
 *   {"user":{"user_id":"alice", settings of /v1/me…}}
 *   {"chat":{"chat_id":"team","members":["alice","bob"]}}
 *
 * Lines are counted from 1; empty ones count and say nothing. Memory: the longest line allowed, and one piece.
 */
#ifndef ROLLCALL_API_SERVICE_IMPORT_LINE_H
#define ROLLCALL_API_SERVICE_IMPORT_LINE_H

#include "api/settings_json.h"
#include "base/buffer.h"
#include "protocol/fields.h"

enum { IMPORT_PIECE_BYTES_MAX = 1 << 17 }; /* what may be added before the lines are taken */

/* ---- from bytes to lines ---- */

struct import_lines {
    struct buffer buffer;
    size_t at;       /* the first byte that was not taken */
    size_t searched; /* there is no end of a line before this */
    size_t line_bytes_max;
    uint64_t line;    /* the number of the last line that was taken */
    bool is_skipping; /* the rest of a line that was too long */
};

void import_lines_init(struct import_lines *lines, size_t line_bytes_max);
void import_lines_free(struct import_lines *lines);

/* Adds the next piece. `lines->buffer.failed`: out of memory. */
void import_lines_add(struct import_lines *lines, struct slice piece);

enum import_lines_result { IMPORT_LINES_NEED_MORE, IMPORT_LINES_LINE, IMPORT_LINES_TOO_LONG };

/* Takes the next line, which stays until the next call of a function above, and may be changed. `at_end`: no more pieces
 * come, so that a last line needs no end. */
enum import_lines_result import_lines_next(struct import_lines *lines, bool at_end,
                                           struct slice *line);

/* ---- from a line to what it says ---- */

enum import_kind { IMPORT_CONTACT, IMPORT_BLOCK, IMPORT_USER, IMPORT_CHAT, IMPORT_KINDS };

struct import_line {
    enum import_kind kind;
    struct slice pair[2]; /* of a contact or block */
    struct slice object;  /* of a user or chat: JSON as it stands */
};

/* Reads a line, whose bytes it changes. Returns NULL, or what is wrong. */
const char *import_line_read(struct slice line, struct import_line *out);

struct import_user {
    struct slice user_id;
    struct settings_json_values values;
    struct ledger_settings_patch patch; /* points to `values` */
};

/* Reads the object of a user, whose bytes it changes. Returns NULL, or what is wrong. */
const char *import_line_read_user(struct slice object, struct fields_scratch *scratch,
                                  struct import_user *out);

struct import_chat {
    struct slice chat_id;
    struct slice *members; /* at least one; the caller frees them */
    size_t member_count;
};

/* Reads the object of a chat, whose bytes it changes. Returns NULL, or what is wrong. */
const char *import_line_read_chat(struct slice object, struct fields_scratch *scratch,
                                  struct import_chat *out);

#endif
