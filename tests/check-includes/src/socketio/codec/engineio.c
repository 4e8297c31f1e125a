#include "protocol/message.h"
#include "connection/connection.h"     /* wrong */
#include "socketio/socketio_session.h" /* wrong */
