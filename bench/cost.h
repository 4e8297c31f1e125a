/*
 * The cost of another process so far: processor time of all its threads, and resident memory.
 *
 * The load generator reads both itself, at the exact start and end of a measurement, so that neither
 * set-up nor tear-down is counted.
 */
#ifndef ROLLCALL_BENCH_COST_H
#define ROLLCALL_BENCH_COST_H

#include <stdint.h>
#include <sys/types.h>

/* User and system time of the process, in nanoseconds. Ends the program if the process has ended. */
uint64_t cost_cpu_ns(pid_t process);

/* Its system time. The kernel counts it in ticks, so it is accurate only over much work. */
uint64_t cost_system_ns(pid_t process);

/* Its resident set in bytes, from smaps_rollup. Ends the program if the process has ended. */
uint64_t cost_resident_bytes(pid_t process);

/* Monotonic time in nanoseconds. */
uint64_t cost_now_ns(void);

/* Allows this program as many descriptors as the system permits. */
void cost_raise_descriptor_limit(void);

/* Prints "load: …" and ends the program, because a measurement with a fault is worthless. */
_Noreturn void cost_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
