/*
 * Why keys could not be had, as one line for the operator: what was read, what was wrong, what was
 * expected. Owned by the caller, set at most once per attempt. It never holds key material.
 */
#ifndef ROLLCALL_AUTH_AUTH_ERROR_H
#define ROLLCALL_AUTH_AUTH_ERROR_H

#include <stdbool.h>

enum { AUTH_ERROR_BYTES_MAX = 512 };

struct auth_error {
    char text[AUTH_ERROR_BYTES_MAX];
};

/* Writes the line (cut where it is too long) and returns false, so that a caller can return it. */
bool auth_error_set(struct auth_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
