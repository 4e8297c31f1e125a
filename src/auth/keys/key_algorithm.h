/* The algorithms that sign tokens. auth/keys/key.h decides which one a key is for. */
#ifndef ROLLCALL_AUTH_KEYS_KEY_ALGORITHM_H
#define ROLLCALL_AUTH_KEYS_KEY_ALGORITHM_H

#include "base/slice.h"

#include <stdbool.h>

enum key_algorithm { KEY_RS256, KEY_ES256, KEY_EDDSA, KEY_HS256 };

/* Returns the name of the algorithm in JOSE; static text. */
const char *key_algorithm_name(enum key_algorithm algorithm);

bool key_algorithm_parse(struct slice name, enum key_algorithm *out);

#endif
