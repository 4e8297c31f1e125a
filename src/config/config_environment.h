/*
 * Settings from environment variables that start with ROLLCALL_.
 *
 * One that names no setting is an error where it was probably meant to: when it has the `__` that
 * stands for a setting's dot, or when a setting's name is near. Any other is somebody else's variable;
 * config_environment_warnings() (config.h) names those, in case it was not.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H
#define ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H

#include "config/config.h"

/* Reads `environment` (NULL-terminated, NAME=VALUE). */
bool config_environment_read(struct config *config, char *const *environment,
                             struct config_error *error);

#endif
