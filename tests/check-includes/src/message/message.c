#include "frame/websocket.h"
#include "connection/connection.h" /* wrong */
