#include <string.h>
#include <sys/epoll.h> /* wrong */

#include "base/slice.h"
#include "protocol/message.h"
#include "net/loop.h" /* wrong */
