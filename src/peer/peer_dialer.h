/*
 * A dialler keeps one peer link to an address up: dials, and dials again after a while whenever the link
 * could not be made or broke.
 *
 * The while doubles from PEER_DIAL_BACKOFF_MIN_MS to PEER_DIAL_BACKOFF_MAX_MS, half of it chance, and
 * begins anew after a link that stood for PEER_DIAL_STABLE_MS. A change is logged: that it is open, and
 * why not; the same reason again is not.
 *
 * `closed` follows each `opened`, and each attempt that failed. Each callback may send, and may end the
 * dialler. A socket closes in a later task only, so an ended dialler stays its owner's until `ended` says
 * that it is gone: who stops the loop before that drops it. One thread, that of the loop.
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
    /* After peer_dialer_end(), from a later task: the dialler is gone. May be NULL for one that is only
     * ever dropped. */
    void (*on_ended)(void *arg);
};

/* Dials in a later turn. `address` is copied, the options' secret, name and TLS context are borrowed. NULL
 * when memory is short. */
struct peer_dialer *peer_dialer_make(const struct peer_link_options *options, const char *address,
                                     const struct peer_dialer_owner *owner, void *arg);

bool peer_dialer_is_open(const struct peer_dialer *dialer);

/* As peer_link_send(). */
bool peer_dialer_send(struct peer_dialer *dialer, const struct slice *pieces, size_t count);
size_t peer_dialer_queued_bytes(const struct peer_dialer *dialer);

/* Nothing but `ended` is called any more. A second time does nothing. */
void peer_dialer_end(struct peer_dialer *dialer);

/* Ends and frees at once, without `ended`, also one that was ended: only while the loop makes no turn. */
void peer_dialer_drop(struct peer_dialer **dialer);

#endif
