/*
 * A circle on its way from Redis to who asked: parsed, copied, and of its contacts those picked who are
 * online. Part of redis_circle.c.
 */
#ifndef ROLLCALL_STORE_REDIS_CIRCLE_READING_H
#define ROLLCALL_STORE_REDIS_CIRCLE_READING_H

#include "redis/resp.h"
#include "store/circle_store.h"

#include <stdbool.h>

/* As presence_visibility has it; NULL for a number that means nothing. */
const char *redis_circle_visibility_name(uint8_t visibility);

/* Reads the script's answer and gives it to `done`, once, also before this returns. With `picks` the contacts
 * are all there are, and the state store, which must outlive the answer, picks those who are online. An
 * answer that makes no sense is STATE_UNAVAILABLE. */
void redis_circle_reading_start(const struct resp_value *reply, struct state_store *state,
                                bool picks,
                                void (*done)(void *arg, enum state_status status,
                                             const struct circle_audience *audience),
                                void *arg);

#endif
