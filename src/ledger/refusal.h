/*
 * Answers that a client owes to operations for which there was no memory to make a request.
 *
 * A client has space for LEDGER_REFUSALS_MAX of them in its own struct and answers them the next time it
 * expires: from outside the operations, as the port promises. When more operations than that fail between
 * two expiries, the operation that finds no space answers the ones owed so far and takes their place. So no
 * operation receives its own answer before its function returns, each receives one, and none of this needs
 * memory.
 *
 * Completions may start operations. If those are refused, they are owed and not answered in the same round,
 * so rounds nest only as often as completions fill the whole space again. Client's thread only.
 */
#ifndef ROLLCALL_LEDGER_REFUSAL_H
#define ROLLCALL_LEDGER_REFUSAL_H

#include "ledger/ledger_request.h"

/* Records that the request's client owes an answer. The request is only borrowed. */
void refusal_owe(const struct ledger_request *request);

/* Answers everything that is owed so far with LEDGER_BUSY. */
void refusal_answer_all(struct ledger_client *client);

#endif
