#include "auth/token.h"
#include "message/message.h"
#include "presence/lease.h" /* wrong */
