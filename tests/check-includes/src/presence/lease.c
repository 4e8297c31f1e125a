#include "presence/lease.h"
#include "presence/visibility/privacy.h"
#include "protocol/message.h"
#include "routing/topics.h"
#include "store/state_store.h"
#include "connection/connection.h"    /* wrong */
#include "messages/sync.h"            /* wrong */
#include "net/loop.h"                 /* wrong */
#include "store/memory/memory_store.h" /* wrong */
