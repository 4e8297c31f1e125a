/* Whether the values of a configuration agree with each other. Bounds of single values are the
 * table's business and hold already. */
#ifndef ROLLCALL_CONFIG_CONFIG_CHECK_H
#define ROLLCALL_CONFIG_CONFIG_CHECK_H

#include "config/config.h"

/* False when the values contradict each other; *error names both and where each came from.
 * What is legal but odd is for config_warnings() to say. */
bool config_check(const struct config *config, struct config_error *error);

#endif
