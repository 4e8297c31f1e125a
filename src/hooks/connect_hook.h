/*
 * The connect hook: before a connection is accepted, the application may refuse it or say more about its user.
 *
 *   question  {"user_id", "device_id", "conn_id", "scope"}
 *   answer    2xx with {"allow":true, "display_name"?, "scope"?} or without a body: accepted
 *             2xx with {"allow":false, "message"?}, or any 4xx: refused
 *             anything else, no answer in time, too many questions, open breaker: the client may try again later
 *
 * What the application says is checked as strictly as what a client says: an answer that breaks the rules accepts nobody.
 * Its scope replaces the token's, but grants neither `admin` nor `service` to a token without them: these act for the
 * application itself, and only its signature on a token, or an API key, makes somebody the application.
 *
 * Threading: the loop's thread only.
 */
#ifndef ROLLCALL_HOOKS_CONNECT_HOOK_H
#define ROLLCALL_HOOKS_CONNECT_HOOK_H

#include "auth/identity.h"
#include "base/ulid.h"
#include "hooks/hook.h"

enum connect_verdict { CONNECT_ACCEPTED, CONNECT_REFUSED, CONNECT_UNDECIDED };

/* Everything is borrowed until the function that gets it returns. */
struct connect_answer {
    enum connect_verdict verdict;
    const char *text;          /* why it was not accepted */
    struct slice display_name; /* SLICE_NONE: the application did not say */
    bool has_scope;
    uint32_t scopes; /* with has_scope, instead of the token's */
};

typedef void (*connect_hook_done)(void *arg, const struct connect_answer *answer);

/* Asks the application. The arguments are borrowed until this returns. `done` runs exactly once, possibly before that. */
void connect_hook_ask(struct hook *hook, const struct identity *identity, struct slice device_id,
                      const struct ulid *conn_id, connect_hook_done done, void *arg);

#endif
