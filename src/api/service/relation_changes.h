/*
 * Changes of relations that the application makes: stored in the ledger, then told to those whom they concern.
 *
 *   pairs (at most LEDGER_RELATIONS_MAX) ──► ledger ──► who of them is online? ──► the pairs with somebody online:
 *   contact_accepted or contact_removed, and presence (api/contact_events.h), RELATION_CHANGES_TOLD_MAX at a time ──► done
 *
 * Of two users who are both offline nobody has to be told anything; only their cached social graphs are dropped. So a
 * million contacts cost what storing them costs. A pair that the ledger had already is told again as a repetition, since
 * the first attempt may have reached nobody.
 */
#ifndef ROLLCALL_API_SERVICE_RELATION_CHANGES_H
#define ROLLCALL_API_SERVICE_RELATION_CHANGES_H

#include "ledger/ledger_relations.h"
#include "session/session_context.h"

enum { RELATION_CHANGES_TOLD_MAX = 16 };

/* In whose name the ledger does what the application asks for: it has one place among the users. */
#define RELATION_CHANGES_ACTOR SLICE("service")

/* The outcome, and what it points to, last until this returns. */
typedef ledger_relations_done relation_changes_done;

/* Changes pairs as ledger_relations_change() does. `done` runs exactly once, when everybody is told, and never from inside
 * this function. The ids are borrowed for the duration of the function. */
void relation_changes_start(struct session_context *sessions, enum ledger_relation_change change,
                            const struct slice *ids, size_t pair_count, relation_changes_done done,
                            void *arg);

#endif
