#include "peer/peer_dialer.h"

#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct peer_dialer {
    const struct peer_dialer_owner *owner;
    void *arg;
    bool ending;
    struct peer_link_options options;
    struct peer_link *link; /* NULL: the timer is set */
    bool open;
    unsigned failures; /* in a row */
    int64_t opened_ms;
    struct wheel_timer timer;
    char why[PEER_REASON_TEXT_MAX]; /* the reason logged last */
    char address[];
};

static int64_t peer_dialer_now_ms(const struct peer_dialer *dialer)
{
    return dialer->options.loop->clock.now_ms;
}

/* Dials again after the back-off, which grows with each failure. */
static void peer_dialer_schedule(struct peer_dialer *dialer)
{
    int64_t delay_ms = backoff_ms(dialer->options.random, dialer->failures,
                                  PEER_DIAL_BACKOFF_MIN_MS, PEER_DIAL_BACKOFF_MAX_MS);
    loop_set_timer(dialer->options.loop, &dialer->timer, peer_dialer_now_ms(dialer) + delay_ms);
    dialer->failures++;
}

static void peer_dialer_free(struct peer_dialer *dialer)
{
    loop_cancel_timer(dialer->options.loop, &dialer->timer);
    peer_link_drop(&dialer->link);
    free(dialer);
}

static void peer_dialer_free_ended(struct peer_dialer *dialer)
{
    const struct peer_dialer_owner *owner = dialer->owner;
    void *arg = dialer->arg;
    peer_dialer_free(dialer);
    owner->on_ended(arg);
}

/* ---- the link ---- */

static void on_dialed_link_opened(struct peer_link *link, void *arg, struct slice name)
{
    struct peer_dialer *dialer = arg;
    (void)link;
    if (dialer->ending)
        return;
    dialer->open = true;
    dialer->opened_ms = peer_dialer_now_ms(dialer);
    dialer->why[0] = '\0';
    log_info("peer_link_open", "address=%s name=%s", log_quote(slice_of(dialer->address)),
             log_quote(name));
    dialer->owner->on_opened(dialer, dialer->arg, name);
}

static void on_dialed_link_frame(struct peer_link *link, void *arg, struct slice frame)
{
    struct peer_dialer *dialer = arg;
    (void)link;
    if (!dialer->ending)
        dialer->owner->on_frame(dialer, dialer->arg, frame);
}

static void on_dialed_link_closed(struct peer_link *link, void *arg, const char *why)
{
    struct peer_dialer *dialer = arg;
    (void)link;
    dialer->link = NULL;
    if (dialer->ending) {
        peer_dialer_free_ended(dialer);
        return;
    }
    if (dialer->open && peer_dialer_now_ms(dialer) - dialer->opened_ms >= PEER_DIAL_STABLE_MS)
        dialer->failures = 0;
    dialer->open = false;
    peer_dialer_schedule(dialer);
    if (strcmp(dialer->why, why) != 0) {
        snprintf(dialer->why, sizeof(dialer->why), "%s", why);
        log_warn("peer_link_closed", "address=%s reason=%s", log_quote(slice_of(dialer->address)),
                 log_sentence(slice_of(why)));
    }
    dialer->owner->on_closed(dialer, dialer->arg, why);
}

static const struct peer_link_owner DIALED_LINK_OWNER = {.on_opened = on_dialed_link_opened,
                                                         .on_frame = on_dialed_link_frame,
                                                         .on_closed = on_dialed_link_closed};

static void on_dial_timer(struct wheel_timer *timer)
{
    struct peer_dialer *dialer = CONTAINER_OF(timer, struct peer_dialer, timer);
    if (dialer->ending) {
        peer_dialer_free_ended(dialer);
        return;
    }
    dialer->link = peer_link_dial(&dialer->options, dialer->address, &DIALED_LINK_OWNER, dialer);
    if (!dialer->link) /* out of memory: try again later */
        peer_dialer_schedule(dialer);
}

/* ---- the dialler ---- */

struct peer_dialer *peer_dialer_make(const struct peer_link_options *options, const char *address,
                                     const struct peer_dialer_owner *owner, void *arg)
{
    size_t address_bytes = strlen(address) + 1;
    struct peer_dialer *dialer = calloc(1, sizeof(*dialer) + address_bytes);
    if (!dialer)
        return NULL;
    memcpy(dialer->address, address, address_bytes);
    dialer->owner = owner;
    dialer->arg = arg;
    dialer->options = *options;
    dialer->timer.fire = on_dial_timer;
    loop_set_timer(options->loop, &dialer->timer, peer_dialer_now_ms(dialer));
    return dialer;
}

bool peer_dialer_is_open(const struct peer_dialer *dialer)
{
    return dialer->open;
}

bool peer_dialer_send(struct peer_dialer *dialer, const struct slice *pieces, size_t count)
{
    return dialer->open && peer_link_send(dialer->link, pieces, count);
}

size_t peer_dialer_queued_bytes(const struct peer_dialer *dialer)
{
    return dialer->link ? peer_link_queued_bytes(dialer->link) : 0;
}

void peer_dialer_cut(struct peer_dialer *dialer, const char *why)
{
    if (dialer->link && !dialer->ending)
        peer_link_close(dialer->link, why);
}

void peer_dialer_end(struct peer_dialer *dialer)
{
    assert(dialer->owner->on_ended);
    if (dialer->ending)
        return;
    dialer->ending = true;
    dialer->open = false;
    if (dialer->link)
        peer_link_close(dialer->link, "closed");
    else
        loop_set_timer(dialer->options.loop, &dialer->timer, peer_dialer_now_ms(dialer));
}

void peer_dialer_drop(struct peer_dialer **dialer)
{
    struct peer_dialer *dropped = *dialer;
    *dialer = NULL;
    if (dropped)
        peer_dialer_free(dropped);
}
