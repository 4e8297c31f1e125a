/* Scripts: EVAL, EVALSHA and SCRIPT. A script sees KEYS, ARGV, redis.call() and redis.pcall(), and cmsgpack. */
#ifndef ROLLCALL_SIM_REDIS_MODEL_MODEL_SCRIPTS_H
#define ROLLCALL_SIM_REDIS_MODEL_MODEL_SCRIPTS_H

#include "redis_model/redis_model.h"

void model_scripts_init(struct redis_model *model);
void model_scripts_free(struct redis_model *model);

#endif
