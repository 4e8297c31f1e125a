/*
 * Admission: the way from a token to a session, the same for every dialect.
 *
 *   admission_begin() ──► token verified ──► client present, gateway takes sessions
 *        ──► the application accepts it, if it is asked (hooks/connect_hook.h) ──► present and taken as before ──► lease opened
 *        ──► hooks->prepare(), if there is one ──admission_resume()──► hooks->open_session() ──► on_end()
 *
 * A name that the application gives the user is stored before the lease, so that a client that is connected reads it.
 * If the ledger does not answer, the connection is not refused for that.
 *
 * Each step may refuse the client; on_end() gets the reason. A token that was revoked meanwhile, or whose key was
 * removed, is refused at the end, because sessions that end for that were looked for before. The lease comes before the session, because a
 * connection that cannot be registered must not be accepted. From then on events are routed to this gateway, so
 * `prepare` can fetch earlier ones and miss none. If no session is opened, the lease is closed again.
 *
 * The struct is embedded in the caller's, which is freed in on_end(). When the client leaves meanwhile, the
 * struct stays: `is_present` returns false, and on_end() runs all the same. One thread.
 */
#ifndef ROLLCALL_SESSION_ADMISSION_H
#define ROLLCALL_SESSION_ADMISSION_H

#include "auth/identity.h"
#include "auth/user_id.h"
#include "base/ulid.h"
#include "session/session_context.h"

#include <stdbool.h>
#include <stddef.h>

enum admission_result {
    ADMISSION_ADMITTED,
    ADMISSION_TOKEN_REFUSED,
    ADMISSION_REFUSED,        /* by the application */
    ADMISSION_CLIENT_GONE,    /* before it had a lease */
    ADMISSION_UNAVAILABLE,    /* the gateway takes no sessions at present */
    ADMISSION_NOT_REGISTERED, /* there is no lease, or no session for it */
};

struct admission;

struct admission_hooks {
    /* Whether the client is still connected. */
    bool (*is_present)(const struct admission *admission);
    /* May be NULL. Why the client's transport takes no sessions at present; NULL: it does. */
    const char *(*refusal)(const struct admission *admission);
    /* May be NULL. The lease is open; calls admission_resume() exactly once, possibly before it returns. */
    void (*prepare)(struct admission *admission);
    /* Makes the session. Returns false when out of memory. */
    bool (*open_session)(struct admission *admission);
    /* The end, exactly once. `text` is why the client was refused; NULL for ADMITTED and CLIENT_GONE. */
    void (*on_end)(struct admission *admission, enum admission_result result, const char *text);
};

struct admission {
    const struct admission_hooks *hooks;
    struct session_context *context;
    struct identity identity; /* once the token is verified */
    struct ulid conn_id;
    size_t device_len;
    char device[DEVICE_ID_BYTES_MAX];
    size_t display_name_len; /* as the application gave it; 0: it did not */
    char display_name[LEDGER_DISPLAY_NAME_BYTES_MAX];
};

/* Starts an admission. Without a `device` the connection id becomes the device id. Returns false when too many tokens
 * wait to be verified or memory is short; on_end() never runs then, else always in a later turn. */
bool admission_begin(struct admission *admission, struct session_context *context,
                     const struct admission_hooks *hooks, struct slice token, struct slice device);

/* `prepare` is done. */
void admission_resume(struct admission *admission);

#define ADMISSION_NOT_REACHABLE_TEXT "this gateway's channel is not subscribed yet"

/* Why the gateway takes no sessions at present; NULL: it does. What others send to a session must arrive from its first
 * moment on, so the gateway's own topic comes first. */
const char *admission_refusal(const struct session_context *context);

static inline struct slice admission_device(const struct admission *admission)
{
    return (struct slice){admission->device, admission->device_len};
}

static inline struct slice admission_display_name(const struct admission *admission)
{
    return (struct slice){admission->display_name, admission->display_name_len};
}

#endif
