/*
 * What another process has cost so far: processor time of all its threads, and resident memory.
 *
 * The load generator reads both itself, at the exact start and end of what it measures, so that
 * no set-up and no tear-down is counted.
 */
#ifndef ROLLCALL_BENCH_COST_H
#define ROLLCALL_BENCH_COST_H

#include <stdint.h>
#include <sys/types.h>

/* User and system time of the process, in nanoseconds. Ends the program if it is gone. */
uint64_t cost_cpu_ns(pid_t process);

/* The system's part of it, as the kernel tells it: in its ticks, so only of much work a share. */
uint64_t cost_system_ns(pid_t process);

/* Its resident set in bytes, from smaps_rollup. Ends the program if it is gone. */
uint64_t cost_resident_bytes(pid_t process);

/* Monotonic time in nanoseconds. */
uint64_t cost_now_ns(void);

/* As many descriptors as the system allows. */
void cost_raise_descriptor_limit(void);

/* Prints "load: …" and ends the program: a measurement with a fault in it is worth nothing. */
_Noreturn void cost_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
