#include "ledger/ledger.h"
#include "ledger/sqlite/sqlite_ledger.h" /* wrong */
#include "presence/lease.h"              /* wrong */
