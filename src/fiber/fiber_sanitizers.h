/*
 * Tells the sanitizers that the stack changes. Without them every function here is empty.
 *
 * AddressSanitizer must know the bounds of the stack in use; ThreadSanitizer keeps a history per stack. A fiber never ends
 * for good before its pool does, so its history is kept over suspensions.
 */
#ifndef ROLLCALL_FIBER_FIBER_SANITIZERS_H
#define ROLLCALL_FIBER_FIBER_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_WITH_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define FIBER_WITH_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIBER_WITH_THREAD_SANITIZER 1
#endif
#endif

#ifdef FIBER_WITH_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBER_WITH_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

struct fiber_sanitizers {
    void *caller_saved; /* AddressSanitizer's record of the caller's stack, and its bounds */
    const void *caller_stack;
    size_t caller_bytes;
    void *fiber_saved;
    void *thread_fiber; /* ThreadSanitizer's name of this fiber, and of its caller */
    void *thread_caller;
};

static inline void fiber_sanitizers_init(struct fiber_sanitizers *self)
{
    *self = (struct fiber_sanitizers){0};
#ifdef FIBER_WITH_THREAD_SANITIZER
    self->thread_fiber = __tsan_create_fiber(0);
#endif
}

static inline void fiber_sanitizers_free(struct fiber_sanitizers *self)
{
    (void)self;
#ifdef FIBER_WITH_THREAD_SANITIZER
    __tsan_destroy_fiber(self->thread_fiber);
#endif
}

/* On the caller's stack, before and after the fiber runs. */
static inline void fiber_sanitizers_before_entering(struct fiber_sanitizers *self,
                                                    const void *stack, size_t bytes)
{
    (void)self, (void)stack, (void)bytes;
#ifdef FIBER_WITH_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&self->caller_saved, stack, bytes);
#endif
#ifdef FIBER_WITH_THREAD_SANITIZER
    self->thread_caller = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(self->thread_fiber, 0);
#endif
}

static inline void fiber_sanitizers_after_leaving(struct fiber_sanitizers *self)
{
    (void)self;
#ifdef FIBER_WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(self->caller_saved, NULL, NULL);
#endif
}

/* On the fiber's stack, after it was entered and before it is left. */
static inline void fiber_sanitizers_after_entering(struct fiber_sanitizers *self)
{
    (void)self;
#ifdef FIBER_WITH_ADDRESS_SANITIZER
    __sanitizer_finish_switch_fiber(self->fiber_saved, &self->caller_stack, &self->caller_bytes);
#endif
}

static inline void fiber_sanitizers_before_leaving(struct fiber_sanitizers *self, bool ended)
{
    (void)self, (void)ended;
#ifdef FIBER_WITH_ADDRESS_SANITIZER
    __sanitizer_start_switch_fiber(&self->fiber_saved, self->caller_stack, self->caller_bytes);
#endif
#ifdef FIBER_WITH_THREAD_SANITIZER
    __tsan_switch_to_fiber(self->thread_caller, 0);
#endif
}

#endif
