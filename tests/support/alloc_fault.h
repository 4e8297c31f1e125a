/*
 * Makes a chosen allocation fail, to prove that the code under test survives it.
 *
 * The linker redirects every malloc, calloc and realloc of the program's own objects to this file: link the
 * test with alloc_fault.c and -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc. Shared libraries keep their
 * own allocator and are not affected. A test usually runs the same scenario with the first, second,
 * third... allocation failing, until a run in which none failed: alloc_fault_sweep().
 *
 * The state is process-wide, for single-threaded tests.
 */
#ifndef ROLLCALL_TESTS_ALLOC_FAULT_H
#define ROLLCALL_TESTS_ALLOC_FAULT_H

#include <stddef.h>

/* Chooses which allocation fails: alloc_fault_after or alloc_fault_from. */
typedef void (*alloc_fault_start)(size_t n);

/* Starts counting; only the n-th allocation from now fails (1 is the next one). */
void alloc_fault_after(size_t n);

/* Starts counting; every allocation from the n-th on fails. */
void alloc_fault_from(size_t n);

/* Stops failing. Returns how many allocations failed since counting started. */
size_t alloc_fault_off(void);

/* Calls `fail_at` with n where memory shall run out, and returns alloc_fault_off(). */
typedef size_t (*alloc_fault_scenario)(alloc_fault_start fail_at, size_t n);

/* Runs the scenario with n = 1, 2, 3… until nothing fails in a run, and returns that n. */
size_t alloc_fault_sweep(alloc_fault_start fail_at, alloc_fault_scenario scenario);

/* Returns how many allocations were requested since counting started. */
size_t alloc_fault_seen(void);

#endif
