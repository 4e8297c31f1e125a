/*
 * Call endings: calls whose end this gateway told a moment ago, in case the call store loses it.
 *
 * A replica that takes over, or a server that starts again, may lack what was written last. Then a call that ended is there
 * once more, held by nobody's wish, or `in_call` of its sides is still set. So after each disturbance of the store
 * (presence/resync.h) what ended within CALL_ENDINGS_KEPT_MS before it is ended again, and `in_call` follows the
 * calls of both sides anew. Where the store has lost nothing, this changes nothing.
 *
 * Bounded by CALL_ENDINGS_MAX: the oldest gives way. Such a call ends when its sides are gone.
 * Part of the call plane, on its thread.
 */
#ifndef ROLLCALL_CALLS_CALL_ENDINGS_H
#define ROLLCALL_CALLS_CALL_ENDINGS_H

#include "base/list.h"
#include "store/call_store.h"

#include <stddef.h>
#include <stdint.h>

enum { CALL_ENDINGS_MAX = 4096, CALL_ENDINGS_KEPT_MS = 10000 };

struct call_plane;

struct call_endings {
    struct list kept; /* the oldest first */
    size_t count;
    int64_t repeated_ms; /* monotonic: the disturbance after which they were last repeated */
};

void call_endings_init(struct call_endings *endings);

/* No operation may be pending. */
void call_endings_free(struct call_endings *endings);

/* Keeps a call that has ended. Without memory it is not kept. */
void call_endings_add(struct call_plane *plane, const struct call *call);

/* Forgets old ones, and after a disturbance repeats the others, once the store answers. */
void call_endings_run(struct call_plane *plane);

#endif
