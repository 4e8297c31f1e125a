/* The rule for names that users see of one another. A pure function; any thread. */
#ifndef ROLLCALL_TEXT_DISPLAY_NAME_H
#define ROLLCALL_TEXT_DISPLAY_NAME_H

#include "base/slice.h"

#include <stdbool.h>

enum { DISPLAY_NAME_CHARACTERS_MAX = 64 };

/* Returns whether a text of valid UTF-8 has at most DISPLAY_NAME_CHARACTERS_MAX characters, none of them a control
 * character. An empty one is valid: it removes the name. */
bool display_name_valid(struct slice name);

#endif
