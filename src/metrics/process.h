/*
 * What the system knows about this process and can say at once. Nothing here may hold up a loop:
 * each call is one or two short system calls, or says that it does not know.
 */
#ifndef ROLLCALL_METRICS_PROCESS_H
#define ROLLCALL_METRICS_PROCESS_H

#include <stdint.h>

/* Counting descriptors one by one gives up here (kernels before 6.2 cannot say the number). */
enum { PROCESS_FDS_COUNTED_MAX = 2048 };

/* Memory in RAM, or -1. */
int64_t process_resident_bytes(void);

/* Open file descriptors; -1 when that cannot be told, or not quickly. */
int64_t process_open_fds(void);

#endif
