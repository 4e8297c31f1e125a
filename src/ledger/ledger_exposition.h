/*
 * Writes the counters of a ledger and of its service in Prometheus' text format. It has no state. Other
 * threads keep counting meanwhile, so the values are not from one instant.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_EXPOSITION_H
#define ROLLCALL_LEDGER_LEDGER_EXPOSITION_H

#include "base/buffer.h"
#include "ledger/remote/ledger_service.h"

void ledger_exposition_write_service(struct buffer *out,
                                     const struct ledger_service_counts *counts);
void ledger_exposition_write_ledger(struct buffer *out, const struct ledger_metrics *metrics);

#endif
