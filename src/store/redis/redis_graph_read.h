/*
 * A graph on its way from Redis to who asked: parsed, copied, and of its contacts those picked who are
 * online. Part of redis_graph.c.
 */
#ifndef ROLLCALL_STORE_REDIS_REDIS_GRAPH_READ_H
#define ROLLCALL_STORE_REDIS_REDIS_GRAPH_READ_H

#include "redis/redis_client.h"
#include "store/graph_store.h"

#include <stdbool.h>

/* As presence_visibility has it; NULL for a number that means nothing. */
const char *redis_graph_visibility_name(uint8_t visibility);

/* Reads the script's answer and gives it to `done`, once, also before this returns. On a cluster the contacts
 * are all there are, and those who are online are picked with the client's help. An answer that makes no
 * sense is STATE_UNAVAILABLE. */
void redis_graph_reading_start(const struct resp_value *reply, struct redis_client *client,
                               graph_lookup_done done, void *arg);

#endif
