#include "ledger/ledger.h"
#include "ledger/sqlite_ledger.h" /* wrong */
#include "presence/lease.h"       /* wrong */
