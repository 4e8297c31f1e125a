#include "kernel/context.h"

#include <stdint.h>
#include <ucontext.h>

/* makecontext() passes only numbers. */
static void run_entry(unsigned entry_high, unsigned entry_low, unsigned arg_high, unsigned arg_low)
{
    void (*entry)(void *) = (void (*)(void *))((uintptr_t)entry_high << 32 | (uintptr_t)entry_low);
    entry((void *)((uintptr_t)arg_high << 32 | (uintptr_t)arg_low));
}

void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void *arg),
                  void *arg)
{
    uintptr_t top = ((uintptr_t)stack + bytes - sizeof(ucontext_t)) & ~(uintptr_t)63;
    ucontext_t *first = (ucontext_t *)top;
    uint64_t entry_bits = (uintptr_t)entry, arg_bits = (uintptr_t)arg;
    getcontext(first);
    first->uc_stack.ss_sp = stack;
    first->uc_stack.ss_size = top - (uintptr_t)stack;
    makecontext(first, (void (*)(void))run_entry, 4, (unsigned)(entry_bits >> 32),
                (unsigned)entry_bits, (unsigned)(arg_bits >> 32), (unsigned)arg_bits);
    context->place = first;
}

void context_switch(struct context *from, const struct context *to)
{
    ucontext_t here; /* on the stack that stops, as long as it is stopped */
    from->place = &here;
    swapcontext(&here, to->place);
}
