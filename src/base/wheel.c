#include "base/wheel.h"

#include <assert.h>
#include <string.h>

void wheel_init(struct wheel *wheel, int64_t now_ms)
{
    memset(wheel, 0, sizeof(*wheel));
    wheel->now_ms = now_ms;
}

void wheel_set_phase(struct wheel *wheel, int64_t phase_ms)
{
    assert(phase_ms >= 0 && phase_ms < WHEEL_PHASES);
    for (unsigned level = 0; level < WHEEL_LEVELS; level++)
        assert(!wheel->occupied[level]);
    wheel->phase_ms = phase_ms;
}

static void push_wheel_timer(struct wheel_timer **head, struct wheel_timer *timer)
{
    timer->next = *head;
    timer->link = head;
    if (*head)
        (*head)->link = &timer->next;
    *head = timer;
}

/* A time with the phase added. */
static int64_t wheel_position(const struct wheel *wheel, int64_t at_ms)
{
    return at_ms > INT64_MAX - wheel->phase_ms ? INT64_MAX : at_ms + wheel->phase_ms;
}

static unsigned wheel_slot_at(int64_t position, unsigned level)
{
    return (unsigned)(position >> (level * WHEEL_SLOT_BITS)) & (WHEEL_SLOTS - 1);
}

/* Places a timer with a future time in the highest level on which that time differs from now. If
 * it differs above all levels, it goes to the last level: to its own slot if that comes up within
 * the next rotation of the wheel (time may be about to carry into the bits above), else to the last
 * slot of that rotation. */
static void place_wheel_timer(struct wheel *wheel, struct wheel_timer *timer)
{
    int64_t now = wheel_position(wheel, wheel->now_ms);
    int64_t at = wheel_position(wheel, timer->at_ms);
    uint64_t differing = (uint64_t)at ^ (uint64_t)now;
    unsigned level = (63U - (unsigned)__builtin_clzll(differing)) / WHEEL_SLOT_BITS;
    unsigned slot;
    if (level < WHEEL_LEVELS) {
        slot = wheel_slot_at(at, level);
    } else {
        level = WHEEL_LEVELS - 1;
        unsigned shift = level * WHEEL_SLOT_BITS;
        int64_t here = now >> shift;
        int64_t ahead = (at >> shift) - here;
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

/* Makes the timers of a slot the first of those that move. */
static void empty_wheel_slot(struct wheel *wheel, unsigned level, unsigned slot)
{
    struct wheel_timer *first = wheel->slots[level][slot];
    wheel->slots[level][slot] = NULL;
    wheel->occupied[level] &= ~(1ULL << slot);
    if (!first)
        return;
    struct wheel_timer **end = &first->next;
    if (wheel->moving) /* only when several levels come up at once */
        while (*end)
            end = &(*end)->next;
    if (wheel->moving) {
        *end = wheel->moving;
        wheel->moving->link = end;
    }
    wheel->moving = first;
    first->link = &wheel->moving;
}

/* Moves at most `max` timers: some fire now, the others go to a finer level. Returns how many moved. */
static size_t move_wheel_timers(struct wheel *wheel, size_t max)
{
    size_t moved = 0;
    for (; wheel->moving && moved < max; moved++) {
        struct wheel_timer *timer = wheel->moving;
        wheel_cancel(wheel, timer);
        if (timer->at_ms > wheel->now_ms)
            place_wheel_timer(wheel, timer);
        else
            push_wheel_timer(&wheel->firing, timer);
    }
    return moved;
}

/* Returns the start of the next occupied slot of any level; INT64_MAX if all slots are empty. */
static int64_t wheel_next_slot_ms(const struct wheel *wheel)
{
    int64_t next = INT64_MAX;
    int64_t now = wheel_position(wheel, wheel->now_ms);
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        uint64_t occupied = wheel->occupied[level];
        if (!occupied)
            continue;
        unsigned shift = level * WHEEL_SLOT_BITS;
        unsigned first = (wheel_slot_at(now, level) + 1) & (WHEEL_SLOTS - 1);
        uint64_t rotated =
            first ? (occupied >> first) | (occupied << (WHEEL_SLOTS - first)) : occupied;
        int64_t ahead = __builtin_ctzll(rotated) + 1;
        int64_t at = (((now >> shift) + ahead) << shift) - wheel->phase_ms;
        if (at < next)
            next = at;
    }
    return next;
}

int64_t wheel_next_ms(const struct wheel *wheel)
{
    return wheel->due || wheel->firing || wheel->moving ? wheel->now_ms : wheel_next_slot_ms(wheel);
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
    int64_t position = wheel_position(wheel, next);
    for (unsigned level = WHEEL_LEVELS; level-- > 0;) {
        unsigned slot = wheel_slot_at(position, level);
        bool starts_here = (position & ((1LL << (level * WHEEL_SLOT_BITS)) - 1)) == 0;
        if (starts_here && (wheel->occupied[level] >> slot & 1))
            empty_wheel_slot(wheel, level, slot);
    }
}

size_t wheel_advance(struct wheel *wheel, int64_t now_ms, size_t max)
{
    size_t fired = 0;
    size_t moves_left = WHEEL_MOVES_MAX;
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
        if (wheel->firing || (wheel->moving && moves_left == 0))
            return fired;
        if (wheel->moving) {
            moves_left -= move_wheel_timers(wheel, moves_left);
            continue;
        }
        if (wheel->now_ms >= now_ms)
            return fired;
        step_wheel(wheel, now_ms);
    }
}
