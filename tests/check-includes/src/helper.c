#include "helper.h"

#include "base/slice.h"
#include "connection/connection.h"
#include "store/state_store.h"
#include "store/memory_store.h" /* wrong */
