/*
 * The links between machines: how long bytes take, and which direction carries nothing for now. What cannot go is tried
 * again, as TCP does, so a short cut delays and only a long one is noticed, by who waits.
 */
#ifndef ROLLCALL_SIM_NETWORK_LINK_H
#define ROLLCALL_SIM_NETWORK_LINK_H

#include "kernel/kernel.h"

enum { LINK_CUTS_MAX = 64 };

/* `to` NULL: to everybody; `from` NULL: from everybody. Lasts until `until_us`. Asymmetric: two calls cut both ways. */
void link_cut(const struct machine *from, const struct machine *to, int64_t until_us);
void link_reset(void);

/* Whether bytes can go that way now. */
bool link_is_up(const struct machine *from, const struct machine *to);

/* How long they take, newly drawn. */
int64_t link_latency_us(const struct machine *from, const struct machine *to);

#endif
