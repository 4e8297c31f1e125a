#include <sys/socket.h>

#include "base/slice.h"
#include "config/config.h" /* wrong */
#include "slice.h" /* wrong */
