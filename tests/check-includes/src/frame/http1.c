#include <string.h>
#include <sys/epoll.h> /* wrong */

#include "base/slice.h"
#include "socket/loop.h" /* wrong */
