#include "base/wheel.h"

#include <string.h>

void wheel_init(struct wheel *wheel, int64_t now_ms)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->now_ms = now_ms;
}

static void push_wheel_timer(struct wheel_timer **head, struct wheel_timer *timer)
{
    timer->next = *head;
    timer->link = head;
    if (*head)
        (*head)->link = &timer->next;
    *head = timer;
}

static unsigned wheel_slot_at(int64_t at_ms, unsigned level)
{
    return (unsigned)(at_ms >> (level * WHEEL_SLOT_BITS)) & (WHEEL_SLOTS - 1);
}

/* Places a timer with a future time in the highest level on which that time differs from now. If
 * it differs above all levels, it goes to the last level: to its own slot if that comes up within
 * the next rotation of the wheel (time may be about to carry into the bits above), else to the last
 * slot of that rotation. */
static void place_wheel_timer(struct wheel *wheel, struct wheel_timer *timer)
{
    uint64_t differing = (uint64_t)timer->at_ms ^ (uint64_t)wheel->now_ms;
    unsigned level = (63U - (unsigned)__builtin_clzll(differing)) / WHEEL_SLOT_BITS;
    unsigned slot;
    if (level < WHEEL_LEVELS) {
        slot = wheel_slot_at(timer->at_ms, level);
    } else {
        level = WHEEL_LEVELS - 1;
        unsigned shift = level * WHEEL_SLOT_BITS;
        int64_t here = wheel->now_ms >> shift;
        int64_t ahead = (timer->at_ms >> shift) - here;
        slot =
            (unsigned)(here + (ahead < WHEEL_SLOTS ? ahead : WHEEL_SLOTS - 1)) & (WHEEL_SLOTS - 1);
    }
    push_wheel_timer(&wheel->slots[level][slot], timer);
    wheel->occupied[level] |= 1ULL << slot;
}

void wheel_cancel(struct wheel *wheel, struct wheel_timer *timer)
{
    (void)wheel; /* the bit of an emptied slot is cleared when the slot comes up */
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
        place_wheel_timer(wheel, timer);
    else
        push_wheel_timer(&wheel->due, timer);
}

/* Takes the timers out of a slot: some fire now, the others move to a finer level. */
static void empty_wheel_slot(struct wheel *wheel, unsigned level, unsigned slot)
{
    struct wheel_timer *timer = wheel->slots[level][slot];
    wheel->slots[level][slot] = NULL;
    wheel->occupied[level] &= ~(1ULL << slot);
    while (timer) {
        struct wheel_timer *next = timer->next;
        if (timer->at_ms > wheel->now_ms)
            place_wheel_timer(wheel, timer);
        else
            push_wheel_timer(&wheel->firing, timer);
        timer = next;
    }
}

/* Returns the start of the next occupied slot of any level; INT64_MAX if all slots are empty. */
static int64_t wheel_next_slot_ms(const struct wheel *wheel)
{
    int64_t next = INT64_MAX;
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        uint64_t occupied = wheel->occupied[level];
        if (!occupied)
            continue;
        unsigned shift = level * WHEEL_SLOT_BITS;
        unsigned first = (wheel_slot_at(wheel->now_ms, level) + 1) & (WHEEL_SLOTS - 1);
        uint64_t rotated =
            first ? (occupied >> first) | (occupied << (WHEEL_SLOTS - first)) : occupied;
        int64_t ahead = __builtin_ctzll(rotated) + 1;
        int64_t at = ((wheel->now_ms >> shift) + ahead) << shift;
        if (at < next)
            next = at;
    }
    return next;
}

int64_t wheel_next_ms(const struct wheel *wheel)
{
    return wheel->due || wheel->firing ? wheel->now_ms : wheel_next_slot_ms(wheel);
}

/* Moves time to the next occupied slot, or to `until` if none comes before it. */
static void step_wheel(struct wheel *wheel, int64_t until)
{
    int64_t next = wheel_next_slot_ms(wheel);
    if (next > until) {
        wheel->now_ms = until;
        return;
    }
    wheel->now_ms = next;
    for (unsigned level = WHEEL_LEVELS; level-- > 0;) {
        unsigned slot = wheel_slot_at(next, level);
        bool starts_here = (next & ((1LL << (level * WHEEL_SLOT_BITS)) - 1)) == 0;
        if (starts_here && (wheel->occupied[level] >> slot & 1))
            empty_wheel_slot(wheel, level, slot);
    }
}

size_t wheel_advance(struct wheel *wheel, int64_t now_ms, size_t max)
{
    size_t fired = 0;
    while (wheel->due) {
        struct wheel_timer *timer = wheel->due;
        wheel_cancel(wheel, timer);
        push_wheel_timer(&wheel->firing, timer);
    }
    for (;;) {
        while (wheel->firing && fired < max) {
            struct wheel_timer *timer = wheel->firing;
            wheel_cancel(wheel, timer);
            fired++;
            timer->fire(timer);
        }
        if (wheel->firing || wheel->now_ms >= now_ms)
            return fired;
        step_wheel(wheel, now_ms);
    }
}
