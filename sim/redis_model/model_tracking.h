/*
 * Client-side caching (CLIENT TRACKING ON OPTIN): a session that said CLIENT CACHING YES before a reading command is told once
 * when one of the keys of that command is written to, removed or expires, by the push "invalidate".
 *
 * Redis reports only writes that changed something; the model reports every write. A key that expires is reported at the first
 * command after it, at most once in MODEL_TRACKING_EXPIRE_US, as the real server's background task does.
 */
#ifndef ROLLCALL_SIM_REDIS_MODEL_TRACKING_H
#define ROLLCALL_SIM_REDIS_MODEL_TRACKING_H

#include "redis_model/model_call.h"

enum { MODEL_TRACKING_EXPIRE_US = 500 * 1000 };

void model_tracking_init(struct redis_model *model);

/* The session tracks nothing any more. */
void model_tracking_stop(struct redis_session *session);

/* CLIENT TRACKING and CLIENT CACHING. Returns false: it is another subcommand. */
bool model_tracking_command(struct model_call *call);

/* After a command was executed. */
void model_tracking_executed(struct model_call *call, const struct model_command *command);

/* The key is changed or gone. */
void model_tracking_invalidate(struct redis_model *model, struct slice key);

/* Between commands: sends what was noted. */
void model_tracking_flush(struct redis_model *model);

/* Removes tracked keys that have expired. */
void model_tracking_expire(struct redis_model *model);

#endif
