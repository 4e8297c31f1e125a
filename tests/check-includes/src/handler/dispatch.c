#include "connection/connection.h"
#include "presence/lease.h"
#include "rest/router.h"  /* wrong */
#include "socket/loop.h"  /* wrong */
