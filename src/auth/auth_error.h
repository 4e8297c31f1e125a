/*
 * Why keys cannot be used, as one line for the operator: what was read, what is wrong, what was
 * expected. The caller owns it; it is set at most once per attempt. It never contains key material.
 */
#ifndef ROLLCALL_AUTH_AUTH_ERROR_H
#define ROLLCALL_AUTH_AUTH_ERROR_H

#include <stdbool.h>

enum { AUTH_ERROR_BYTES_MAX = 512 };

struct auth_error {
    char text[AUTH_ERROR_BYTES_MAX];
};

/* Writes the line, cut if it is too long. Returns false, so that a caller can return it. */
bool auth_error_set(struct auth_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
