/*
 * Defaults that depend on other settings. A value that is set is never changed; an unset value
 * adapts, so that changing one setting of a group never makes the others wrong.
 *
 * timing.profile gives heartbeat interval, heartbeat timeout and expiry window. If one of them is
 * set and a value of the profile contradicts it, that value adapts: an unset timeout shrinks to two
 * thirds of a set expiry window or grows to twice a set interval, an unset expiry window grows to one
 * and a half timeouts, an unset interval shrinks to half of the timeout.
 *
 * An unset burst is at least its rate. The unset limit on all commands is at least that on messages.
 * Unset outbound thresholds keep warning below critical. An unset auth.dev is true if dev is. An
 * empty gateway.node_id becomes the one that the caller proposes.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_DERIVE_H
#define ROLLCALL_CONFIG_CONFIG_DERIVE_H

#include "config/config.h"

/* Returns false if the proposed node id is invalid or when out of memory. */
bool config_derive(struct config *config, const char *default_node_id, struct config_error *error);

#endif
