/*
 * Answers that are owed for calls there was no memory to make a request of.
 *
 * A client has room for LEDGER_REFUSALS_MAX of them, given with the client itself, and answers them the
 * next time it expires: from outside the calls, as the port promises. When more calls than that fail
 * between two expiries, the ones owed so far are answered from within the call that finds no room, and that
 * call is owed its own in their place. So no call ever hears its own answer before it returns, none goes
 * unanswered, and nothing depends on memory that is not there.
 *
 * Completions may call again. What they are refused is owed, not answered in the same round, so rounds
 * nest only as often as completions fill all the room anew. On the client's thread.
 */
#ifndef ROLLCALL_LEDGER_REFUSAL_H
#define ROLLCALL_LEDGER_REFUSAL_H

#include "ledger/ledger_request.h"

/* The request's client owes it an answer; the request itself is not needed any more. */
void refusal_owe(const struct ledger_request *request);

/* Answers all that is owed so far with LEDGER_BUSY. */
void refusal_answer_all(struct ledger_client *client);

#endif
