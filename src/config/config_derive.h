/*
 * Defaults that depend on other settings. A value somebody set is never touched; a value nobody set
 * follows, so that turning one of a group never makes the rest of the group wrong:
 *
 *  - timing.profile gives heartbeat interval, heartbeat timeout and expiry window. Where one of
 * them is set and a profile's value would contradict it, that one gives way: an unset timeout
 * shrinks to two thirds of a set window or grows to twice a set interval, an unset window grows to
 * one and a half timeouts, an unset interval shrinks to half the timeout.
 *  - an unset burst is at least its rate, the unset limit on all commands at least that on
 * messages,
 *  - unset outbound thresholds keep warning below critical,
 *  - an unset auth.dev is true where dev is,
 *  - an empty gateway.node_id is the one the caller proposes.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_DERIVE_H
#define ROLLCALL_CONFIG_CONFIG_DERIVE_H

#include "config/config.h"

/* Fails when the proposed node id is not one, or memory runs out. */
bool config_derive(struct config *config, const char *default_node_id, struct config_error *error);

#endif
