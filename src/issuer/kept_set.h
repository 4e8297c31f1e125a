/* The file in which the issuer's last good key set is kept. It holds public keys only. */
#ifndef ROLLCALL_ISSUER_KEPT_SET_H
#define ROLLCALL_ISSUER_KEPT_SET_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* Appends the file's text, and tells when it was written. Returns false if there is none that can be read. */
bool kept_set_read(const char *path, struct buffer *text, int64_t *written_at_wall_ms);

/* Replaces the file at once: a reader sees the old text or the new one. Returns false if that fails. */
bool kept_set_write(const char *path, struct slice text);

#endif
