#include "connection/connection.h"
#include "store/memory/memory_store.h"
