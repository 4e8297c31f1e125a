/*
 * Reads a user's graph from the ledger: settings, contacts, blocks and chats, from one snapshot.
 *
 * It may be old by the time it arrives; whoever keeps the graph must know that nothing changed since
 * before it was asked for (store/graph_store.h: the ticket).
 */
#ifndef ROLLCALL_CONTACTS_GRAPH_LOAD_H
#define ROLLCALL_CONTACTS_GRAPH_LOAD_H

#include "ledger/ledger.h"
#include "store/graph_store.h"

/* `done` runs once; NULL: the ledger cannot tell, or memory is short. */
void graph_load(struct ledger_client *ledger, struct slice user_id,
                void (*done)(void *arg, const struct social_graph *graph), void *arg);

#endif
