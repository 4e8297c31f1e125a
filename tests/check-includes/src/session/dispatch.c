#include "connection/connection.h"
#include "presence/lease.h"
#include "api/router.h"                 /* wrong */
#include "net/loop.h"                   /* wrong */
#include "socketio/socketio_session.h"  /* wrong */
