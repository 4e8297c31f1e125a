#include "presence/lease.h"
#include "store/memory/memory_store.h"
#include "support/alloc_fault.h"
#include "connection/connection.h" /* wrong */
