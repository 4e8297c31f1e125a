#include "auth/token.h"
#include "protocol/message.h"
#include "presence/lease.h" /* wrong */
#include "socketio/codec/engineio.h" /* wrong */
