/* A user id is 1 to 128 bytes of UTF-8 without control characters (C0, DEL and C1). */
#ifndef ROLLCALL_AUTH_USER_ID_H
#define ROLLCALL_AUTH_USER_ID_H

#include "base/slice.h"

#include <stdbool.h>

enum { USER_ID_BYTES_MAX = 128 };

bool user_id_valid(struct slice id);

#endif
