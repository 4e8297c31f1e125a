#include "base/slice.h"
#include "config/config.h" /* wrong */
