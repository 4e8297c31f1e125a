/* JSON that several resources share: times, and the leases that administrators see. */
#ifndef ROLLCALL_API_ADMIN_JSON_H
#define ROLLCALL_API_ADMIN_JSON_H

#include "base/buffer.h"
#include "store/state_store.h"

/* Writes "key":"2026-…Z", or null for TIME_NONE. */
void admin_write_time(struct buffer *out, struct slice key, int64_t wall_ms);

/* Writes an array of connections. */
void admin_write_leases(struct buffer *out, const struct lease *leases, size_t count);

#endif
