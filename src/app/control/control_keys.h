/*
 * The command `key`: makes, lists and revokes API keys.
 *
 *   key create NAME SCOPE   prints the key, which is nowhere else
 *   key list                a line for each key: name, scope, when it was made and last used
 *   key revoke NAME
 */
#ifndef ROLLCALL_APP_CONTROL_CONTROL_KEYS_H
#define ROLLCALL_APP_CONTROL_CONTROL_KEYS_H

#include "app/control/control_call.h"

void control_keys_run(const struct control_call *call);

/* Whether a list of scopes, separated by spaces, names known ones only, and at least one. */
bool control_keys_scope_valid(struct slice scope);

#endif
