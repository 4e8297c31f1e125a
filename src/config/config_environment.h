/*
 * Settings from environment variables that start with ROLLCALL_.
 *
 * A variable that names no setting is an error if it was probably meant to: if it contains `__`,
 * which stands for the dot of a name, or resembles the name of a setting. Any other belongs to
 * something else; config_environment_warnings() (config.h) lists those.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H
#define ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H

#include "config/config.h"

/* Reads `environment` (NULL-terminated, NAME=VALUE). */
bool config_environment_read(struct config *config, char *const *environment,
                             struct config_error *error);

#endif
