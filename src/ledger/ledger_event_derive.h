/*
 * Which events a request makes, for backends: to be called when the request has its outcome, inside the transaction that stores its act.
 */
#ifndef ROLLCALL_LEDGER_LEDGER_EVENT_DERIVE_H
#define ROLLCALL_LEDGER_LEDGER_EVENT_DERIVE_H

#include "ledger/ledger_request.h"

enum { LEDGER_EVENTS_OF_REQUEST_MAX = 2 };

/* Writes the events into `events` and returns how many there are; the texts lie in the request's memory. Only types that a queue of
 * the request wants are written; without queues there is none. */
size_t ledger_event_derive(struct ledger_request *request,
                           struct ledger_event events[LEDGER_EVENTS_OF_REQUEST_MAX]);

#endif
