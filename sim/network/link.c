#include "network/link.h"

struct cut {
    const struct machine *from;
    const struct machine *to;
    int64_t until_us;
};

static struct {
    struct cut cuts[LINK_CUTS_MAX];
    size_t count;
} links;

void link_reset(void)
{
    links.count = 0;
}

static void link_forget_old_cuts(void)
{
    for (size_t i = links.count; i-- > 0;)
        if (links.cuts[i].until_us <= kernel_now_us())
            links.cuts[i] = links.cuts[--links.count];
}

void link_cut(const struct machine *from, const struct machine *to, int64_t until_us)
{
    link_forget_old_cuts();
    if (links.count < LINK_CUTS_MAX)
        links.cuts[links.count++] = (struct cut){from, to, until_us};
}

bool link_is_up(const struct machine *from, const struct machine *to)
{
    if (from->is_off || to->is_off)
        return false;
    for (size_t i = 0; i < links.count; i++) {
        const struct cut *cut = &links.cuts[i];
        bool matches = (!cut->from || cut->from == from) && (!cut->to || cut->to == to);
        if (matches && from != to && kernel_now_us() < cut->until_us)
            return false;
    }
    return true;
}

int64_t link_latency_us(const struct machine *from, const struct machine *to)
{
    int64_t jitter_us = from->jitter_us + to->jitter_us;
    return from->latency_us + to->latency_us + 1 +
           (int64_t)random_below(kernel_random(), (uint64_t)jitter_us + 1);
}
