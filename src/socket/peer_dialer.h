/*
 * A dialler keeps one peer link to an address up: dials, and dials again after a while whenever the link
 * could not be made or broke.
 *
 * The while doubles from PEER_DIAL_BACKOFF_MIN_MS to PEER_DIAL_BACKOFF_MAX_MS, half of it chance, and
 * begins anew after a link that stood for PEER_DIAL_STABLE_MS. A change is logged: that it is open, and
 * why not; the same reason again is not.
 *
 * `closed` follows each `opened`, and each attempt that failed. Each callback may send, and may end the
 * dialler. One thread, that of the loop.
 */
#ifndef ROLLCALL_SOCKET_PEER_DIALER_H
#define ROLLCALL_SOCKET_PEER_DIALER_H

#include "socket/peer_link.h"

enum {
    PEER_DIAL_BACKOFF_MIN_MS = 50,
    PEER_DIAL_BACKOFF_MAX_MS = 1000,
    PEER_DIAL_STABLE_MS = 1000,
};

struct peer_dialer;

struct peer_dialer_owner {
    void (*opened)(struct peer_dialer *dialer, void *arg, struct slice name);
    void (*received)(struct peer_dialer *dialer, void *arg, struct slice frame);
    void (*closed)(struct peer_dialer *dialer, void *arg, const char *why);
};

/* Dials in a later turn. `address` is copied, the options' secret, name and TLS context are borrowed. NULL
 * when memory is short. */
struct peer_dialer *peer_dialer_make(const struct peer_link_options *options, const char *address,
                                     const struct peer_dialer_owner *owner, void *arg);

bool peer_dialer_is_open(const struct peer_dialer *dialer);

/* As peer_link_send(). */
bool peer_dialer_send(struct peer_dialer *dialer, const struct slice *pieces, size_t count);
size_t peer_dialer_queued_bytes(const struct peer_dialer *dialer);

/* Nothing is called any more. The memory goes when the socket is closed, in a later task. */
void peer_dialer_end(struct peer_dialer **dialer);

/* The same at once: only while the loop makes no turn. */
void peer_dialer_drop(struct peer_dialer **dialer);

#endif
