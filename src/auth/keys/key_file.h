/*
 * The bytes of a key file. They may be a private key, so the memory is erased before it is freed.
 * The caller owns it, may write to `data` (the JSON parser does), and calls key_file_free().
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_FILE_H
#define ROLLCALL_AUTH_KEYS_KEY_FILE_H

#include "auth/auth_error.h"

#include <stdbool.h>
#include <stddef.h>

/* Enough for 64 certificates with long names. */
enum { KEY_FILE_BYTES_MAX = 256 * 1024 };

struct key_file {
    char *data; /* followed by one zero byte */
    size_t len;
};

/* Reads the whole file. Returns false if it cannot be read, is empty or exceeds the bound. */
bool key_file_read(const char *path, struct key_file *file, struct auth_error *error);

void key_file_free(struct key_file *file);

#endif
