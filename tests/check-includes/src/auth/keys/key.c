#include "auth/token.h"
#include "base/slice.h"
#include "metrics/metrics.h" /* wrong */
