/*
 * Keys as they stand in an answer or a file: slices into somebody else's memory, checked before use. Parsers without
 * I/O.
 */
#ifndef ROLLCALL_AWS_AWS_KEY_TEXT_H
#define ROLLCALL_AWS_AWS_KEY_TEXT_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Session tokens of STS have about 1 KB. */
enum { AWS_KEY_BYTES_MAX = 256, AWS_TOKEN_BYTES_MAX = 8 * 1024 };

struct aws_key_text {
    struct slice access_key_id;
    struct slice secret_access_key;
    struct slice session_token; /* empty: none */
    int64_t ends_at_wall_ms;    /* 0: never */
};

/* Returns whether both keys are there and everything may stand in an HTTP header. */
bool aws_key_text_is_usable(const struct aws_key_text *text);

/* Returns whether the text is printable ASCII without blanks, 1 to `len_max` bytes. */
bool aws_is_header_text(struct slice text, size_t len_max);

/* Reads the answer of a container's or an instance's endpoint, unescaping it in place. Returns false if it is malformed
 * or tells of a failure. */
bool aws_key_text_read_json(char *data, size_t len, struct aws_key_text *out);

/* Reads STS's answer. Returns false if it is malformed. */
bool aws_key_text_read_xml(struct slice xml, struct aws_key_text *out);

/* Returns the text of the first element of this name (letters); SLICE_NONE: there is none. */
struct slice aws_xml_element(struct slice xml, struct slice name);

#endif
