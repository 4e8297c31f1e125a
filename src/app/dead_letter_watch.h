/*
 * Counts the dead letters of a Kafka feed every DEAD_LETTER_WATCH_INTERVAL_MS, for the metric fanout.dlq.depth. Asking the
 * brokers blocks, so it has a thread of its own, one per process.
 */
#ifndef ROLLCALL_APP_DEAD_LETTER_WATCH_H
#define ROLLCALL_APP_DEAD_LETTER_WATCH_H

#include "config/config.h"
#include "metrics/exposition.h"

enum { DEAD_LETTER_WATCH_INTERVAL_MS = 5000 };

struct dead_letter_watch;

/* Adds the watch's metrics to the exposition, which no thread uses yet, and starts its thread. Returns NULL when out of memory or threads. `config`
 * outlives it. */
struct dead_letter_watch *dead_letter_watch_start(const struct config *config,
                                                  struct exposition *exposition);

/* Ends the thread, which may take as long as an unanswered question to a broker. The metrics stay: free it after the
 * exposition's last use. */
void dead_letter_watch_free(struct dead_letter_watch **watch);

#endif
