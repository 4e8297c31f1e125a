/*
 * `rollcall webhooks list | replay [ID…]`: events that no endpoint took in time. A command of control_call.h.
 *
 * An ID is the `id` of the event, as its endpoint has seen it. Replayed events go to the end of their queue; without an ID all do.
 */
#ifndef ROLLCALL_APP_CONTROL_CONTROL_WEBHOOKS_H
#define ROLLCALL_APP_CONTROL_CONTROL_WEBHOOKS_H

#include "app/control/control_call.h"

void control_webhooks_run(const struct control_call *call);

#endif
