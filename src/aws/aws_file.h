/* Short local files: tokens and the shared credentials. */
#ifndef ROLLCALL_AWS_AWS_FILE_H
#define ROLLCALL_AWS_AWS_FILE_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>

enum { AWS_FILE_BYTES_MAX = 64 * 1024 };

/* Appends the file's text. Returns false, with nothing appended, if it cannot be read, is no regular file or is too large. */
bool aws_file_read(const char *path, struct buffer *text);

/* Returns the text without white space around it. */
struct slice aws_trim(struct slice text);

/* Overwrites what the buffer holds, which was a secret, and frees it. */
void aws_wipe(struct buffer *secret);

#endif
