/* Checks that the values of a configuration agree with each other. The bounds of single values are
 * in the table and hold already. */
#ifndef ROLLCALL_CONFIG_CONFIG_CHECK_H
#define ROLLCALL_CONFIG_CONFIG_CHECK_H

#include "config/config.h"

/* Returns false if two values contradict each other; *error names both and their sources.
 * config_warnings() reports legal but odd values. */
bool config_check(const struct config *config, struct config_error *error);

#endif
