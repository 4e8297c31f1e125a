/*
 * The aggregator's half of the topics (aggregate_carrier.h): it subscribes once in Redis to each topic that any gateway has
 * asked for, passes on every event to all that did, and publishes for them.
 *
 * A gateway hears that a topic is live when Redis has confirmed the subscription, at once where it had before, and again
 * after every gap of the aggregator's own. A session has at most AGGREGATE_SESSION_TOPICS_MAX topics; a further one is not
 * subscribed to, and logged. One thread, that of the loop.
 */
#ifndef ROLLCALL_BUS_AGGREGATE_AGGREGATE_TOPICS_H
#define ROLLCALL_BUS_AGGREGATE_AGGREGATE_TOPICS_H

#include "aggregate/aggregate_service.h"
#include "redis/redis_client.h"

enum { AGGREGATE_SESSION_TOPICS_MAX = 1 << 18 };

struct aggregate_topics;
struct aggregate_topics_session;

/* The client and the metrics are borrowed. Returns NULL when out of memory. */
struct aggregate_topics *aggregate_topics_make(struct redis_client *client, struct metrics *metrics,
                                               uint64_t hash_seed);

/* After all sessions were closed and before the Redis client is freed, only while the loop makes no turn. */
void aggregate_topics_free(struct aggregate_topics **topics);

/* Returns NULL when out of memory. */
struct aggregate_topics_session *aggregate_topics_open(struct aggregate_topics *topics,
                                                       struct aggregate_session *session);
void aggregate_topics_close(struct aggregate_topics_session **session);

/* Takes a call about topics. Returns false, having taken nothing, when it is none, or its body is none. */
bool aggregate_topics_serve(struct aggregate_topics_session *session,
                            struct aggregate_served *served, struct slice body);

#endif
