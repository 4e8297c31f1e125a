/*
 * The bytes of a key file. They may be a private key, so the memory is wiped before it is freed.
 * Owned by the caller, who may write to `data` (the JSON parser does) and ends it with
 * key_file_free().
 */
#ifndef ROLLCALL_AUTH_KEYS_KEY_FILE_H
#define ROLLCALL_AUTH_KEYS_KEY_FILE_H

#include "auth/auth_error.h"

#include <stdbool.h>
#include <stddef.h>

/* 64 certificates with long chains of names fit in this with room to spare. */
enum { KEY_FILE_BYTES_MAX = 256 * 1024 };

struct key_file {
    char *data; /* followed by one zero byte */
    size_t len;
};

/* Reads all of `path`. False when it cannot be read, is empty or is longer than the bound. */
bool key_file_read(const char *path, struct key_file *file, struct auth_error *error);

void key_file_free(struct key_file *file);

#endif
