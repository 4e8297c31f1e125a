/*
 * Requests that change the same counts take turns: those of one user's contacts, blocks and calls, those of one chat's members,
 * and all revocations. Together they would only make each other's transactions fail. Requests of other processes still
 * may; then the conditions of the transactions decide.
 *
 *   take ──► its turn: start it ──► ended: next ──► start the next one
 *        └─► kept until its turn
 *
 * A kept request has no fiber. Threading: the ledger's own thread.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TURNS_H
#define ROLLCALL_LEDGER_DYNAMODB_DYNAMODB_TURNS_H

#include "base/table.h"
#include "ledger/ledger_request.h"

struct dynamodb_turns {
    struct table lines; /* by whose turn it is */
};

/* Returns false when out of memory. */
bool dynamodb_turns_init(struct dynamodb_turns *turns, uint64_t seed);

/* Every request that was taken has ended. */
void dynamodb_turns_free(struct dynamodb_turns *turns);

/* Returns whether the request may start now. Otherwise it is kept, until dynamodb_turns_next() returns it. */
bool dynamodb_turns_take(struct dynamodb_turns *turns, struct ledger_request *request);

/* A request that could start has ended. Returns the one to start in its place; NULL: none. */
struct ledger_request *dynamodb_turns_next(struct dynamodb_turns *turns,
                                           const struct ledger_request *request);

#endif
