#include "api/router.h"
#include "session/dispatch.h"
#include "socketio/codec/engineio.h"
#include "store/redis/redis_store.h" /* wrong */
