/*
 * Names this process so that another one on the same machine can tell whether it still runs.
 *
 * The text is "<boot>:<process namespace>:<pid>:<start time>". A process of another machine, of the time before a reboot or
 * of another container cannot be judged, so it counts as running. A process id that was given to another process
 * meanwhile has another start time.
 */
#ifndef ROLLCALL_APP_PROCESS_ID_H
#define ROLLCALL_APP_PROCESS_ID_H

#include "base/slice.h"

#include <stdbool.h>

enum { PROCESS_ID_BYTES_MAX = 128 };

/* Returns the name of this process, in `out`; empty where the system does not tell. */
struct slice process_id_write(char out[PROCESS_ID_BYTES_MAX]);

/* Returns whether the process certainly runs no more. Anything that is not such a name counts as running. */
bool process_id_is_gone(struct slice process);

#endif
