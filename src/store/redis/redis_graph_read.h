/*
 * Reads a social graph from the script's reply: parses it, copies it, and selects the contacts who are online. A part of
 * redis_graph.c.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_GRAPH_READ_H
#define ROLLCALL_STORE_REDIS_REDIS_GRAPH_READ_H

#include "redis/redis_client.h"
#include "store/graph_store.h"

#include <stdbool.h>

/* The name of a visibility as presence_visibility has it; NULL for a number without a meaning. */
const char *redis_graph_visibility_name(uint8_t visibility);

/* Reads the reply and passes the result to `done`, exactly once, possibly before this function returns. On a cluster
 * the reply has all contacts, and the client is used to find those who are online. A malformed reply is
 * STATE_UNAVAILABLE. */
void redis_graph_read(const struct resp_value *reply, struct redis_client *client,
                      graph_lookup_done done, void *arg);

#endif
