#include "kernel/context.h"

#include <stdint.h>

/* Registers in the order in which the switch pops them, and where it returns to. */
struct frame {
    uintptr_t r15, r14, r13, r12, rbx, rbp;
    void (*resume)(void);
    uintptr_t end; /* no caller: backtraces stop here, and the stack is aligned as at a call */
};

void context_swap(void **from, void *to);
void context_start(void);

/* The function that a new stack runs is in r12, its argument in r13. */
__asm__(".text\n"
        ".type context_swap, @function\n"
        "context_swap:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size context_swap, .-context_swap\n"
        ".type context_start, @function\n"
        "context_start:\n"
        "    mov %r13, %rdi\n"
        "    jmp *%r12\n"
        ".size context_start, .-context_start\n");

void context_make(struct context *context, void *stack, size_t bytes, void (*entry)(void *arg),
                  void *arg)
{
    uintptr_t top = ((uintptr_t)stack + bytes) & ~(uintptr_t)15;
    struct frame *frame = (struct frame *)(top - sizeof(*frame));
    *frame =
        (struct frame){.r12 = (uintptr_t)entry, .r13 = (uintptr_t)arg, .resume = context_start};
    context->place = frame;
}

void context_switch(struct context *from, const struct context *to)
{
    context_swap(&from->place, to->place);
}
