#include "base/wheel.h"

#include <string.h>

void wheel_init(struct wheel *wheel, int64_t now_ms)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->now_ms = now_ms;
}

static void push(struct wheel_timer **head, struct wheel_timer *timer)
{
    timer->next = *head;
    timer->link = head;
    if (*head)
        (*head)->link = &timer->next;
    *head = timer;
}

static unsigned slot_at(int64_t at_ms, unsigned level)
{
    return (unsigned)(at_ms >> (level * WHEEL_SLOT_BITS)) & (WHEEL_SLOTS - 1);
}

/* A slot of the last level for a time that no level can tell from now: its own slot when that comes
 * up within the next turn of the wheel (time may be about to carry over into the bits above), or
 * else the last slot of that turn. */
static unsigned last_level_slot(const struct wheel *wheel, int64_t at_ms)
{
    unsigned shift = (WHEEL_LEVELS - 1) * WHEEL_SLOT_BITS;
    int64_t here = wheel->now_ms >> shift;
    int64_t ahead = (at_ms >> shift) - here;
    return (unsigned)(here + (ahead < WHEEL_SLOTS ? ahead : WHEEL_SLOTS - 1)) & (WHEEL_SLOTS - 1);
}

/* For a time in the future. The highest level on which it and now differ is the one whose slot
 * tells them apart. */
static void place(struct wheel *wheel, struct wheel_timer *timer)
{
    uint64_t differing = (uint64_t)timer->at_ms ^ (uint64_t)wheel->now_ms;
    unsigned level = (63U - (unsigned)__builtin_clzll(differing)) / WHEEL_SLOT_BITS;
    unsigned slot;
    if (level < WHEEL_LEVELS) {
        slot = slot_at(timer->at_ms, level);
    } else {
        level = WHEEL_LEVELS - 1;
        slot = last_level_slot(wheel, timer->at_ms);
    }
    push(&wheel->slots[level][slot], timer);
    wheel->occupied[level] |= 1ULL << slot;
}

void wheel_cancel(struct wheel *wheel, struct wheel_timer *timer)
{
    (void)wheel; /* an emptied slot's bit is cleared when the slot comes up */
    if (!timer->link)
        return;
    *timer->link = timer->next;
    if (timer->next)
        timer->next->link = timer->link;
    timer->link = NULL;
}

void wheel_set(struct wheel *wheel, struct wheel_timer *timer, int64_t at_ms)
{
    wheel_cancel(wheel, timer);
    timer->at_ms = at_ms;
    if (at_ms > wheel->now_ms)
        place(wheel, timer);
    else
        push(&wheel->due, timer);
}

/* Takes a slot's timers out: some fire now, the others go to a finer level. */
static void empty_slot(struct wheel *wheel, unsigned level, unsigned slot)
{
    struct wheel_timer *timer = wheel->slots[level][slot];
    wheel->slots[level][slot] = NULL;
    wheel->occupied[level] &= ~(1ULL << slot);
    while (timer) {
        struct wheel_timer *next = timer->next;
        if (timer->at_ms > wheel->now_ms)
            place(wheel, timer);
        else
            push(&wheel->firing, timer);
        timer = next;
    }
}

/* The start of the nearest occupied slot of a level, seen from now; INT64_MAX when it is empty. */
static int64_t level_next_ms(const struct wheel *wheel, unsigned level)
{
    uint64_t occupied = wheel->occupied[level];
    if (!occupied)
        return INT64_MAX;
    unsigned shift = level * WHEEL_SLOT_BITS;
    unsigned here = slot_at(wheel->now_ms, level);
    unsigned turn = (here + 1) & (WHEEL_SLOTS - 1);
    uint64_t rotated = turn ? (occupied >> turn) | (occupied << (WHEEL_SLOTS - turn)) : occupied;
    unsigned ahead = (unsigned)__builtin_ctzll(rotated) + 1;
    return ((wheel->now_ms >> shift) + ahead) << shift;
}

static int64_t next_slot_ms(const struct wheel *wheel)
{
    int64_t next = INT64_MAX;
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        int64_t at = level_next_ms(wheel, level);
        if (at < next)
            next = at;
    }
    return next;
}

int64_t wheel_next_ms(const struct wheel *wheel)
{
    return wheel->due || wheel->firing ? wheel->now_ms : next_slot_ms(wheel);
}

/* Moves time to the next occupied slot, or to `until` when none comes before it. */
static void step(struct wheel *wheel, int64_t until)
{
    int64_t next = next_slot_ms(wheel);
    if (next > until) {
        wheel->now_ms = until;
        return;
    }
    wheel->now_ms = next;
    for (unsigned level = WHEEL_LEVELS; level-- > 0;) {
        unsigned slot = slot_at(next, level);
        bool starts_here = (next & ((1LL << (level * WHEEL_SLOT_BITS)) - 1)) == 0;
        if (starts_here && (wheel->occupied[level] >> slot & 1))
            empty_slot(wheel, level, slot);
    }
}

static void start_due(struct wheel *wheel)
{
    while (wheel->due) {
        struct wheel_timer *timer = wheel->due;
        wheel_cancel(wheel, timer);
        push(&wheel->firing, timer);
    }
}

size_t wheel_advance(struct wheel *wheel, int64_t now_ms, size_t max)
{
    size_t fired = 0;
    start_due(wheel);
    for (;;) {
        while (wheel->firing && fired < max) {
            struct wheel_timer *timer = wheel->firing;
            wheel_cancel(wheel, timer);
            fired++;
            timer->fire(timer);
        }
        if (wheel->firing || wheel->now_ms >= now_ms)
            return fired;
        step(wheel, now_ms);
    }
}
