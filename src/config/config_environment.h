/* Settings from environment variables: every variable that starts with ROLLCALL_ is one. */
#ifndef ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H
#define ROLLCALL_CONFIG_CONFIG_ENVIRONMENT_H

#include "config/config.h"

/* Reads `environment` (NULL-terminated, NAME=VALUE). A variable that names no setting is an error:
 * it is a setting misspelt. */
bool config_environment_read(struct config *config, char *const *environment,
                             struct config_error *error);

#endif
