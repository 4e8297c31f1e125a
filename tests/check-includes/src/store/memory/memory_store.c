#include "store/memory/memory_store.h"
#include "store/state_store.h"
#include "presence/lease.h" /* wrong */
