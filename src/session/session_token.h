/* The token of a session: until when it holds, and what ends it before that: its user's tokens are revoked, or the
 * key that verified it is removed. */
#ifndef ROLLCALL_SESSION_SESSION_TOKEN_H
#define ROLLCALL_SESSION_SESSION_TOKEN_H

#include "session/session.h"

/* The session rests on this token from now on, and ends when it expires. */
void session_take_token(struct session *session, const struct identity *identity);

/* Ends the user's sessions on this gateway whose tokens were issued in that second or before. */
void session_end_revoked(struct session_context *context, struct slice user_id,
                         int64_t revoked_at_s);

/* Ends the sessions whose tokens no key of the verifier has verified, within a few seconds if they are many. */
void session_end_without_key(struct session_context *context);

#endif
