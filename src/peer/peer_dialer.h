/*
 * A dialler keeps one peer link to an address open: it dials, and dials again after a back-off whenever the
 * link could not be made or broke.
 *
 * The back-off doubles from PEER_DIAL_BACKOFF_MIN_MS to PEER_DIAL_BACKOFF_MAX_MS, half of it random, and
 * starts again at the minimum after a link that was open for PEER_DIAL_STABLE_MS. It logs every change: that
 * the link is open, and why it is not; it does not log the same reason twice in a row.
 *
 * `on_closed` follows each `on_opened`, and each attempt that failed. Each callback may send, and may end the
 * dialler. A socket closes only in a later task, so an ended dialler belongs to its owner until `on_ended`
 * runs: an owner that stops the loop before that must drop it. One thread, that of the loop.
 */
#ifndef ROLLCALL_PEER_PEER_DIALER_H
#define ROLLCALL_PEER_PEER_DIALER_H

#include "peer/peer_link.h"

enum {
    PEER_DIAL_BACKOFF_MIN_MS = 50,
    PEER_DIAL_BACKOFF_MAX_MS = 1000,
    PEER_DIAL_STABLE_MS = 1000,
};

struct peer_dialer;

struct peer_dialer_owner {
    void (*on_opened)(struct peer_dialer *dialer, void *arg, struct slice name);
    void (*on_frame)(struct peer_dialer *dialer, void *arg, struct slice frame);
    void (*on_closed)(struct peer_dialer *dialer, void *arg, const char *why);
    /* After peer_dialer_end(), in a later task: the dialler was freed. May be NULL for a dialler that is only
     * dropped. */
    void (*on_ended)(void *arg);
};

/* Dials in a later turn. Copies `address`; secret, name and TLS context of the options must outlive it.
 * Returns NULL when out of memory. */
struct peer_dialer *peer_dialer_make(const struct peer_link_options *options, const char *address,
                                     const struct peer_dialer_owner *owner, void *arg);

bool peer_dialer_is_open(const struct peer_dialer *dialer);

/* Like peer_link_send(). */
bool peer_dialer_send(struct peer_dialer *dialer, const struct slice *pieces, size_t count);
size_t peer_dialer_queued_bytes(const struct peer_dialer *dialer);

/* Closes the link, if there is one, because of `why`; `on_closed` follows in a later task, and a new attempt after that. */
void peer_dialer_cut(struct peer_dialer *dialer, const char *why);

/* Closes the link and frees the dialler later; only `on_ended` runs after this. Does nothing when repeated. */
void peer_dialer_end(struct peer_dialer *dialer);

/* Frees at once, without `on_ended`, also a dialler that was ended. Only while the loop makes no turn. */
void peer_dialer_drop(struct peer_dialer **dialer);

#endif
