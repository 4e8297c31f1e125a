/*
 * Lets a chosen allocation fail, to prove that the code under test survives it.
 *
 * The linker sends every malloc, calloc and realloc of the program's own objects here: link the
 * test with alloc_fault.c and -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. Shared libraries keep
 * their own allocator and are not affected. The usual test runs the same scenario with the first,
 * second, third... allocation failing, until a run goes by in which none failed: alloc_fault_sweep().
 *
 * Process-wide state, for single-threaded tests.
 */
#ifndef ROLLCALL_TESTS_ALLOC_FAULT_H
#define ROLLCALL_TESTS_ALLOC_FAULT_H

#include <stddef.h>

/* Starts counting; the n-th allocation from now fails (1 is the next one), once. */
void alloc_fault_after(size_t n);

/* Starts counting; every allocation from the n-th on fails. */
void alloc_fault_from(size_t n);

/* Stops failing. Answers how many allocations failed since it was set. */
size_t alloc_fault_off(void);

/* Runs the scenario with 1, 2, 3… until a run in which nothing failed, and answers that number. The scenario
 * calls `fail_at` (alloc_fault_after or alloc_fault_from) with it where memory is to run out, and answers
 * alloc_fault_off(). */
size_t alloc_fault_sweep(void (*fail_at)(size_t n),
                         size_t (*scenario)(void (*fail_at)(size_t n), size_t n));

/* How many allocations were asked for since counting last started. */
size_t alloc_fault_seen(void);

#endif
