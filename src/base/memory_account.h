/*
 * How many bytes a worker holds for its clients, by kind. Whoever grows or shrinks such memory adds the difference.
 *
 * When the total exceeds `check_above`, `on_grown` runs: it only makes sure that the owner checks the budget soon, since
 * the caller may be iterating over connections. One thread.
 */
#ifndef ROLLCALL_BASE_MEMORY_ACCOUNT_H
#define ROLLCALL_BASE_MEMORY_ACCOUNT_H

#include <stdint.h>

enum memory_kind {
    MEMORY_QUEUES,   /* outbound queues of more than one message */
    MEMORY_MESSAGES, /* messages that have not arrived completely */
    MEMORY_BODIES,   /* bodies of HTTP requests */
    MEMORY_KINDS
};

struct memory_account {
    int64_t bytes[MEMORY_KINDS];
    int64_t total;
    int64_t check_above;
    void (*on_grown)(struct memory_account *account); /* NULL: nobody checks */
};

static inline void memory_account_add(struct memory_account *account, enum memory_kind kind,
                                      int64_t difference)
{
    account->bytes[kind] += difference;
    account->total += difference;
    if (difference > 0 && account->total > account->check_above && account->on_grown)
        account->on_grown(account);
}

#endif
