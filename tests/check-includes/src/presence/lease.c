#include "message/message.h"
#include "presence/lease.h"
#include "routing/topics.h"
#include "store/state_store.h"
#include "connection/connection.h" /* wrong */
#include "durability/sequence.h"   /* wrong */
#include "socket/loop.h"           /* wrong */
#include "store/memory_store.h"    /* wrong */
