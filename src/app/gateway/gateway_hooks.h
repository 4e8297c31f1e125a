/*
 * The hooks of one gateway (hooks/): made if their URLs are configured, with one HTTP client for both. The gates are shared by
 * the gateways of a process. A part of the composition root.
 */
#ifndef ROLLCALL_APP_GATEWAY_GATEWAY_HOOKS_H
#define ROLLCALL_APP_GATEWAY_GATEWAY_HOOKS_H

#include "hooks/event_hook.h"
#include "session/session_context.h"

/* What the gateways of a process share. NULL gates: the hook is off. */
struct hook_parts {
    struct hook_gate *connect_gate;
    struct hook_gate *event_gate;
    struct webhook_secret secret;
};

/* Reads the secret and makes the gates. Returns NULL, or what went wrong, a static text; the process then gives up. */
const char *hook_parts_make(struct hook_parts *parts, const struct config *whole);
void hook_parts_free(struct hook_parts *parts);

struct gateway_hooks {
    struct http_client *client; /* NULL: both are off */
    struct hook connect;
    struct hook event;
    struct event_hook events;
};

/* Connects the hooks that are configured to the sessions. Returns false when out of memory or descriptors. */
bool gateway_hooks_make(struct gateway_hooks *hooks, struct hook_parts *parts,
                        struct session_context *sessions, uint64_t hash_seed);

/* Sets the gauges. */
void gateway_hooks_sample(const struct gateway_hooks *hooks);

/* Completes what is in flight; nothing more is asked. May be called twice. */
void gateway_hooks_close(struct gateway_hooks *hooks);

/* After gateway_hooks_close(). */
void gateway_hooks_free(struct gateway_hooks *hooks);

#endif
