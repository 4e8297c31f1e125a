/*
 * Facts about this process that the system answers at once. Nothing here may block a loop: each
 * function makes one or two short system calls, or returns -1 for "unknown".
 */
#ifndef ROLLCALL_METRICS_PROCESS_H
#define ROLLCALL_METRICS_PROCESS_H

#include <stdint.h>

/* Kernels before 6.2 do not report the number of descriptors; counting them one by one stops
 * here. */
enum { PROCESS_FDS_COUNTED_MAX = 2048 };

/* Returns the resident memory, or -1. */
int64_t process_resident_bytes(void);

/* Returns the number of open file descriptors; -1 if it is unknown or too slow to count. */
int64_t process_open_fds(void);

#endif
