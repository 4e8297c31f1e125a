/*
 * A table as DynamoDB describes it, and how it differs from our description (dynamodb_tables.h). Parsers and comparison
 * without I/O.
 */
#ifndef ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_TABLE_STATE_H
#define ROLLCALL_LEDGER_DYNAMODB_CLIENT_DYNAMODB_TABLE_STATE_H

#include "ledger/dynamodb/dynamodb_tables.h"

#include <stdbool.h>
#include <stddef.h>

enum { DYNAMODB_NAME_MAX = 256, DYNAMODB_DIFFERENCE_MAX = 640 };

struct dynamodb_key_part {
    char name[DYNAMODB_NAME_MAX]; /* empty: there is no such part */
    char type[8];                 /* "S", "N" or "B" */
};

struct dynamodb_table_state {
    bool exists;
    char status[32]; /* "ACTIVE", "CREATING", … */
    struct dynamodb_key_part partition;
    struct dynamodb_key_part sort;
    bool is_on_demand;
    bool is_protected;   /* from deletion */
    bool has_recovery;   /* to any point in time of the last weeks */
    bool knows_recovery; /* false: the endpoint has no such operation (DynamoDB Local) */
    char expires[DYNAMODB_NAME_MAX]; /* the attribute by which items are removed; empty: none is */
};

/* Each reads an answer, changing it in place, into its part of the state. Returns false if it is malformed. */
bool dynamodb_table_state_read_table(struct dynamodb_table_state *state, char *answer, size_t len);
bool dynamodb_table_state_read_recovery(struct dynamodb_table_state *state, char *answer,
                                        size_t len);
bool dynamodb_table_state_read_expiry(struct dynamodb_table_state *state, char *answer, size_t len);

/* Takes one sentence, borrowed: "the key is (id S), expected (chat_id S, sequence N)". */
typedef void (*dynamodb_difference_hook)(void *arg, const char *difference);

/* Tells each difference, and returns how many there are. */
size_t dynamodb_table_state_compare(const struct dynamodb_table_state *state,
                                    const struct dynamodb_table_description *expected,
                                    dynamodb_difference_hook on_difference, void *arg);

#endif
