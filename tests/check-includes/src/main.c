#include "connection/connection.h"
#include "store/memory_store.h"
