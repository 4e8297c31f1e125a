#include "base/slice.h"
#include "auth/keys/key.h"
#include "config/config.h" /* wrong */
