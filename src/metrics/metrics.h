/*
 * Metrics: one table of names, one array of values per worker.
 *
 * A worker counts into its own `struct metrics` with plain, relaxed operations. The exposition (any
 * worker, for a request of /metrics) adds up the arrays of all workers. Names are those of the
 * specification, with dots replaced by underscores and `rollcall_` in front. Every metric of the
 * table exists with every backend and is zero where it does not apply.
 *
 * A row of the table says what is shown:
 *
 *   COUNTER                  only grows; the workers' values are added
 *   LARGEST_COUNTER          only grows; counted by another (Redis, the ledger that all workers share),
 *                            each worker copies the value, and the largest copy is shown
 *   SUM, LARGEST, SMALLEST   a gauge that is set; the workers' values are added, or one is chosen.
 *                            A SMALLEST starts at 1, so a worker that never sets it does not count
 *   LARGEST_MILLE            as LARGEST, set in thousandths of what is shown
 *   RATE(counter)            growth per second over the last METRICS_RATE_PERIOD_S seconds
 *   SHARE_OF(part, whole)    part / whole, of the growth in the last METRICS_RECENT_PERIOD_S seconds
 *   SHARE_BESIDE(part, rest) part / (part + rest), likewise; 0 when nothing happened
 *   P99(latency)             seconds, likewise; 0 when nothing happened
 *
 * The last four are computed when they are shown and are never set.
 *
 * Metrics of a backend and who keeps them:
 *
 *   DYNAMODB_…, TRANSACTION_…,    ledger/ledger_metrics.h, where the ledger's backend counts;
 *   DUPLICATE_SEQUENCE            app/gateway/gateway_messages.c copies them
 *   KAFKA_CONFIGURED, …AVAILABLE  app/gateway/gateway_messages.c, from the feed in use
 *   FANOUT_CONSUMER_LAG           the feed's consumer: for Kafka, what the broker reports of the
 *                                 consumer's partitions
 *   FANOUT_DEAD_LETTERS, …DEPTH   the feed, when an event was stored as a dead letter
 *   FANOUT_CONSUMER_RESTARTS      the feed, when it opens its consumer again after a fatal error
 */
#ifndef ROLLCALL_METRICS_METRICS_H
#define ROLLCALL_METRICS_METRICS_H

#include "base/buffer.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    METRICS_WORKERS_MAX = 258, /* workers, and the threads that fetch keys and count dead letters */
    METRICS_RATE_PERIOD_S = 10,
    METRICS_RECENT_PERIOD_S = 60,
    /* Bucket i counts durations of at most 2^i microseconds (the last finite one 17 s); the last
     * bucket counts all longer ones. */
    METRICS_HISTOGRAM_BUCKETS = 26
};

/* id, name after "rollcall_", what is shown, help */
#define METRICS_LIST(ROW)                                                                          \
    ROW(CONNECTIONS_ACTIVE, "gateway_connections_active", SUM, "Open, established connections")    \
    ROW(SOCKETIO_CONNECTIONS, "gateway_socketio_connections", SUM,                                 \
        "Socket.IO connections, including those that have not sent CONNECT yet")                   \
    ROW(IMPORT_LINES, "service_import_lines", COUNTER,                                             \
        "Lines of POST /v1/service/import that the ledger has answered")                           \
    ROW(CONNECTIONS_OPENED, "gateway_connections_opened", COUNTER, "Connections established")      \
    ROW(CONNECTIONS_RATE, "gateway_connections_rate", RATE(CONNECTIONS_OPENED),                    \
        "Connections established per second")                                                      \
    ROW(CONNECTIONS_REFUSED, "gateway_connections_refused", COUNTER,                               \
        "Handshakes answered with an error")                                                       \
    ROW(CONNECTIONS_DISPLACED, "gateway_connections_displaced", COUNTER,                           \
        "Connections without a user that were closed to admit new ones")                           \
    ROW(CONNECTIONS_EVICTED, "gateway_connections_evicted", COUNTER,                               \
        "Connections closed because their user had too many")                                      \
    ROW(CONNECTIONS_CLOSED, "gateway_connections_closed", COUNTER,                                 \
        "Connections closed, for any reason")                                                      \
    ROW(CONNECTION_TIMEOUT, "gateway_connection_timeout", COUNTER,                                 \
        "Connections closed after a silence of the expiry window")                                 \
    ROW(CONNECTION_UNHEALTHY, "gateway_connection_unhealthy", COUNTER,                             \
        "Times a connection became unhealthy after a silence of the heartbeat timeout")            \
    ROW(SLOW_CONSUMER_WARNINGS, "gateway_slow_consumer_warnings", COUNTER,                         \
        "SLOW_CONSUMER errors sent")                                                               \
    ROW(SLOW_CONSUMER_DISCONNECTS, "gateway_slow_consumer_disconnects", COUNTER,                   \
        "Connections closed as slow consumers")                                                    \
    ROW(CIRCUIT_BREAKER_OPEN, "gateway_circuit_breaker_open", LARGEST,                             \
        "1 while the circuit breaker of the ledger is open")                                       \
    ROW(INSTANCES_HEALTHY, "gateway_instances_healthy", LARGEST, "Gateways known to be alive")     \
    ROW(REDIS_CONNECTION_ERRORS, "gateway_redis_connection_errors", COUNTER,                       \
        "Connections to Redis that failed or broke")                                               \
    ROW(GATEWAY_REDIS_AVAILABLE, "gateway_redis_available", SMALLEST,                              \
        "1 while Redis answers this gateway; 0 if no Redis is configured")                         \
    ROW(AUTH_FAILURES, "gateway_auth_failures", COUNTER, "Tokens refused")                         \
    ROW(JWKS_REFRESHES, "auth_jwks_refreshes", COUNTER, "Key sets fetched from auth.jwks_url")     \
    ROW(JWKS_FAILURES, "auth_jwks_failures", COUNTER,                                              \
        "Fetches from auth.jwks_url without a usable key set")                                     \
    ROW(JWKS_AGE, "auth_jwks_age_seconds", LARGEST,                                                \
        "Time since the keys of auth.jwks_url were last confirmed; 0 without one")                 \
    ROW(ORIGIN_REFUSED, "gateway_origin_refused", COUNTER,                                         \
        "Handshakes from an origin that is not allowed")                                           \
    ROW(RATE_LIMITED, "gateway_rate_limited", COUNTER, "Commands answered with RATE_LIMITED")      \
    ROW(LIMITS_REFUSED_MESSAGES, "limits_refused_messages", COUNTER,                               \
        "Chat messages beyond a user's budget")                                                    \
    ROW(LIMITS_REFUSED_REST, "limits_refused_rest", COUNTER,                                       \
        "REST requests beyond a user's budget")                                                    \
    ROW(LIMITS_REFUSED_CONTACT_REQUESTS, "limits_refused_contact_requests", COUNTER,               \
        "Contact requests beyond a user's budget")                                                 \
    ROW(LIMITS_REFUSED_CHATS, "limits_refused_chats", COUNTER,                                     \
        "Chats and chat members beyond a user's budget")                                           \
    ROW(LIMITS_REFUSED_SETTINGS, "limits_refused_settings", COUNTER,                               \
        "Changes of settings, contacts and blocks beyond a user's budget")                         \
    ROW(LIMITS_REFUSED_READS, "limits_refused_reads", COUNTER,                                     \
        "Presence queries, opened chats and pages of history beyond a user's budget")              \
    ROW(LIMITS_REFUSED_SIGNALS, "limits_refused_signals", COUNTER,                                 \
        "Typing notices and call commands beyond a user's budget")                                 \
    ROW(LIMITS_REFUSED_CALLS, "limits_refused_calls", COUNTER, "Calls beyond a user's budget")     \
    ROW(LIMITS_REFUSED_EVENTS, "limits_refused_events", COUNTER,                                   \
        "Events for hooks.event_url beyond a user's budget")                                       \
    ROW(LIMITS_REFUSED_SERVICE, "limits_refused_service", COUNTER,                                 \
        "Requests to /v1/service beyond the budget of a key")                                      \
    ROW(LIMITS_ANSWERS_HELD, "limits_answers_held", COUNTER,                                       \
        "HTTP answers to users beyond their budget that were held back")                           \
    ROW(LIMITS_THROTTLED, "limits_throttled", COUNTER,                                             \
        "Times a connection was not read for a while because its client floods")                   \
    ROW(LIMITS_FLOODS_CLOSED, "limits_floods_closed", COUNTER,                                     \
        "Connections closed because their clients flooded on")                                     \
    ROW(LIMITS_TABLE_BYTES, "limits_table_bytes", LARGEST,                                         \
        "Memory of the budgets that are not full")                                                 \
    ROW(SOCKETIO_ADAPTER_RECEIVED, "socketio_adapter_received", COUNTER,                           \
        "Messages of Socket.IO adapters and emitters")                                             \
    ROW(SOCKETIO_ADAPTER_DROPPED, "socketio_adapter_dropped", COUNTER,                             \
        "Messages of Socket.IO adapters and emitters that were invalid or too many")               \
    ROW(HOOKS_ASKED, "hooks_asked", COUNTER, "Questions sent to the application")                  \
    ROW(HOOKS_IN_FLIGHT, "hooks_in_flight", SUM, "Questions that wait for an answer")              \
    ROW(HOOKS_FAILED, "hooks_failed", COUNTER,                                                     \
        "Questions that the application did not answer, in time or with 2xx or 4xx")               \
    ROW(HOOKS_NOT_ASKED, "hooks_not_asked", COUNTER,                                               \
        "Questions refused because too many were in flight or the breaker was open")               \
    ROW(HOOKS_CONNECTIONS_REFUSED, "hooks_connections_refused", COUNTER,                           \
        "Connections that the application refused")                                                \
    ROW(HOOKS_BREAKER_OPEN, "hooks_circuit_breaker_open", LARGEST,                                 \
        "1 while the circuit breaker of a hook is open")                                           \
    ROW(SERVER_BUSY, "gateway_server_busy", COUNTER, "Commands answered with SERVER_BUSY")         \
    ROW(INVALID_MESSAGES, "gateway_invalid_messages", COUNTER,                                     \
        "Messages answered with INVALID_MESSAGE")                                                  \
    ROW(PROTOCOL_ERRORS, "gateway_protocol_errors", COUNTER,                                       \
        "Connections closed for a violation of HTTP, WebSocket or Socket.IO")                      \
    ROW(ADDRESS_REFUSED, "gateway_address_refused", COUNTER,                                       \
        "Connections and requests refused because their address had too many connections")         \
    ROW(HELD_QUEUE_BYTES, "gateway_held_queue_bytes", SUM,                                         \
        "Bytes held in outbound queues of more than one message")                                  \
    ROW(HELD_MESSAGE_BYTES, "gateway_held_message_bytes", SUM,                                     \
        "Bytes held for messages that have not arrived completely")                                \
    ROW(HELD_BODY_BYTES, "gateway_held_body_bytes", SUM, "Bytes held for bodies of HTTP requests") \
    ROW(HELD_PARKED_BYTES, "gateway_held_parked_bytes", SUM, "Bytes held for parked sessions")     \
    ROW(MESSAGES_UNFINISHED, "gateway_messages_unfinished", COUNTER,                               \
        "Connections closed, and requests refused, because a message or body took too long")       \
    ROW(MEMORY_SHED, "gateway_memory_shed", COUNTER, "Connections closed to free memory")          \
    ROW(MESSAGES_IN, "gateway_messages_received", COUNTER, "Messages received from clients")       \
    ROW(MESSAGES_OUT, "gateway_messages_queued", COUNTER, "Messages queued for clients")           \
    ROW(MESSAGES_SUPERSEDED, "gateway_messages_superseded", COUNTER,                               \
        "Queued presence changes replaced by a newer one")                                         \
    ROW(STATES_SHED, "gateway_states_shed", COUNTER,                                               \
        "Presence and typing changes not queued because the queue was too full")                   \
    ROW(BUS_DROPPED, "gateway_bus_dropped", COUNTER,                                               \
        "Events refused by the full mailbox of another gateway, and subscriptions that failed")    \
    ROW(BUS_GAPS, "bus_gaps", COUNTER, "Topics that may have missed events and were read again")   \
    ROW(BUS_REROUTED, "bus_rerouted", COUNTER,                                                     \
        "Events sent by mailbox or peer link because Redis did not accept them")                   \
    ROW(BUS_DUPLICATES, "bus_duplicates_dropped", COUNTER,                                         \
        "Events received a second time by another transport and dropped")                          \
    ROW(PEER_LINKS_OPEN, "peer_links_open", SUM, "Open peer links")                                \
    ROW(PEER_FRAMES_SENT, "peer_frames_sent", COUNTER, "Events sent over peer links")              \
    ROW(PEER_FRAMES_RECEIVED, "peer_frames_received", COUNTER, "Events received over peer links")  \
    ROW(PEER_FRAMES_SKIPPED, "peer_frames_skipped", COUNTER,                                       \
        "Events that no peer link could accept")                                                   \
    ROW(HTTP_REQUESTS, "http_requests", COUNTER, "HTTP requests answered")                         \
    ROW(SOCKETIO_RECOVERED, "socketio_recovered", COUNTER,                                         \
        "Socket.IO sessions recovered after they lost their connection")                           \
    ROW(HTTP_HANDOVERS, "http_handovers", COUNTER,                                                 \
        "HTTP connections moved to the worker that serves their Engine.IO session")                \
    ROW(HEARTBEATS, "heartbeat_received", COUNTER, "Heartbeats received")                          \
    ROW(HEARTBEAT_QPS, "heartbeat_qps", RATE(HEARTBEATS), "Heartbeats per second")                 \
    ROW(HEARTBEAT_LATENCY_P99, "heartbeat_latency_p99", P99(HEARTBEAT),                            \
        "Seconds from the arrival of a heartbeat until its answer is queued, 99th percentile")     \
    ROW(LEASES_RENEWED, "heartbeat_leases_renewed", COUNTER, "Leases renewed in the state store")  \
    ROW(PRESENCE_TRANSITIONS, "presence_transitions", COUNTER, "Changes of users' presence")       \
    ROW(PRESENCE_HELD, "presence_changes_held", COUNTER,                                           \
        "Changes of presence held back by presence.min_dwell_ms")                                  \
    ROW(PRESENCE_TRANSITIONS_PER_SEC, "presence_transitions_per_sec", RATE(PRESENCE_TRANSITIONS),  \
        "Changes of presence per second")                                                          \
    ROW(PRESENCE_STALE_ENTRIES, "presence_stale_entries", LARGEST,                                 \
        "Expired leases that no reaper has removed yet")                                           \
    ROW(PRESENCE_STALE_RATIO, "presence_stale_ratio", LARGEST_MILLE,                               \
        "Share of connections that are unhealthy")                                                 \
    ROW(PRESENCE_UPDATE_LATENCY_P99, "presence_update_latency_p99", P99(PRESENCE),                 \
        "Seconds from a presence transition to its local delivery, 99th percentile")               \
    ROW(PRESENCE_REAPED, "presence_leases_reaped", COUNTER,                                        \
        "Leases that expired and were removed")                                                    \
    ROW(SUBSCRIPTIONS, "presence_subscriptions", SUM, "Presence subscriptions")                    \
    ROW(SUBSCRIPTION_FANOUT_COUNT, "presence_subscription_fanout_count", LARGEST,                  \
        "Connections that received the last presence change")                                      \
    ROW(PRESENCE_DELIVERIES, "presence_deliveries", COUNTER,                                       \
        "Presence changes delivered to connections")                                               \
    ROW(FRIENDS_TOLD, "presence_friend_deliveries", COUNTER,                                       \
        "Presence changes of contacts delivered to connections without a subscription")            \
    ROW(FRIENDS_SKIPPED, "presence_friend_skipped", COUNTER,                                       \
        "Social graphs that could not be read, so that contacts missed a presence change")         \
    ROW(GRAPH_HITS, "presence_circle_hits", COUNTER, "Social graphs found in the cache")           \
    ROW(GRAPH_MISSES, "presence_circle_misses", COUNTER, "Social graphs read from the ledger")     \
    ROW(RESYNC_USERS, "presence_resync_users", COUNTER,                                            \
        "Users read again after events may have been missed")                                      \
    ROW(RESYNC_TOLD, "presence_resync_told", COUNTER,                                              \
        "Presence changes found by such a read and delivered")                                     \
    ROW(PRESENCE_CLAIMS_SETTLED, "presence_claims_settled", COUNTER,                               \
        "Users of whom this gateway knew more than the state store, settled with it")              \
    ROW(PRESENCE_CLAIMS_DROPPED, "presence_claims_dropped", COUNTER,                               \
        "Such users beyond what a gateway keeps, left to the expiry of their leases")              \
    ROW(SYNCS_REQUIRED, "syncs_required", COUNTER,                                                 \
        "Devices that were told to sync because they may have missed pushes")                      \
    ROW(TYPING_DELIVERY_P99, "typing_delivery_time_p99", P99(TYPING),                              \
        "Seconds from a typing notice to its delivery, 99th percentile")                           \
    ROW(CHATS_OPEN, "chats_open", SUM, "Chats that connections have open")                         \
    ROW(TYPING_UPDATES, "typing_updates", COUNTER, "Typing notices accepted")                      \
    ROW(TYPING_LIMITED, "typing_limited", COUNTER, "Typing notices dropped by the rate limit")     \
    ROW(TYPING_PUSHES, "typing_pushes", COUNTER, "Typing changes sent to a chat's viewers")        \
    ROW(TYPING_COALESCED, "typing_coalesced", COUNTER,                                             \
        "Typing that ended before it was sent to the chat's viewers")                              \
    ROW(TYPING_DELIVERIES, "typing_deliveries", COUNTER,                                           \
        "Typing changes delivered to connections")                                                 \
    ROW(CALLS_STARTED, "calls_started", COUNTER, "Calls that began to ring or were declared")      \
    ROW(CALLS_ANSWERED, "calls_answered", COUNTER, "Calls accepted")                               \
    ROW(CALLS_BUSY, "calls_busy", COUNTER, "Call requests answered with CALL_BUSY")                \
    ROW(CALLS_ENDED_HANGUP, "calls_ended_hangup", COUNTER,                                         \
        "Calls ended by one of the two parties")                                                   \
    ROW(CALLS_ENDED_REJECTED, "calls_ended_rejected", COUNTER, "Calls rejected")                   \
    ROW(CALLS_ENDED_CANCELLED, "calls_ended_cancelled", COUNTER,                                   \
        "Calls cancelled by the caller while ringing")                                             \
    ROW(CALLS_ENDED_TIMEOUT, "calls_ended_timeout", COUNTER, "Calls that nobody answered")         \
    ROW(CALLS_ENDED_DISCONNECTED, "calls_ended_disconnected", COUNTER,                             \
        "Calls ended because a device stayed disconnected")                                        \
    ROW(CALLS_ACTIVE, "calls_active", SUM, "Calls in progress (sum over all gateways of a fleet)") \
    ROW(CALL_RING_TIME_P99, "call_ring_time_p99", P99(CALL_RING),                                  \
        "Seconds from a call request to its answer, 99th percentile")                              \
    ROW(ROUTING_KEYS_COUNT, "routing_keys_count", SUM, "Routing entries: connections and users")   \
    ROW(ROUTING_MULTI_DEVICE_USERS, "routing_multi_device_users", SUM,                             \
        "Users with more than one connection; in a fleet, on the same gateway")                    \
    ROW(ROUTING_VALUES_MENDED, "routing_values_mended", COUNTER,                                   \
        "Foreign or corrupt values found under our keys and removed")                              \
    ROW(ROUTING_LOOKUPS, "routing_lookups", COUNTER, "Routing lookups")                            \
    ROW(ROUTING_LOOKUP_ERRORS, "routing_lookup_errors", COUNTER, "Routing lookups that failed")    \
    ROW(ROUTES_CACHED, "routing_routes_cached", COUNTER, "Users whose routes were known already")  \
    ROW(ROUTES_READ, "routing_routes_read", COUNTER, "Users whose routes were read from Redis")    \
    ROW(ROUTES_INVALIDATED, "routing_routes_invalidated", COUNTER,                                 \
        "Reports of Redis that a known route has changed")                                         \
    ROW(ROUTING_LOOKUP_ERRORS_RATE, "routing_lookup_errors_rate",                                  \
        SHARE_OF(ROUTING_LOOKUP_ERRORS, ROUTING_LOOKUPS), "Share of routing lookups that failed")  \
    ROW(STATE_AVAILABLE, "state_available", SMALLEST,                                              \
        "1 while the state store answers, whether Redis or memory")                                \
    ROW(REDIS_AVAILABLE, "redis_available", SMALLEST,                                              \
        "1 while Redis answers; 0 if no Redis is configured")                                      \
    ROW(REDIS_USED_MEMORY_PCT, "redis_used_memory_pct", LARGEST_MILLE,                             \
        "Redis memory in use, per cent of maxmemory")                                              \
    ROW(REDIS_KEYSPACE_HITS, "redis_keyspace_hits", LARGEST_COUNTER, "Redis keyspace hits")        \
    ROW(REDIS_KEYSPACE_MISSES, "redis_keyspace_misses", LARGEST_COUNTER, "Redis keyspace misses")  \
    ROW(REDIS_EXPIRED_KEYS, "redis_expired_keys", LARGEST_COUNTER, "Redis keys expired")           \
    ROW(REDIS_EVICTED_KEYS, "redis_evicted_keys", LARGEST_COUNTER, "Redis keys evicted")           \
    ROW(REDIS_CONNECTED_CLIENTS, "redis_connected_clients", LARGEST, "Clients connected to Redis") \
    ROW(REDIS_PUBSUB_CHANNELS, "redis_pubsub_channels", LARGEST, "Redis pub/sub channels")         \
    ROW(REDIS_PUBSUB_PATTERNS, "redis_pubsub_patterns", LARGEST, "Redis pub/sub patterns")         \
    ROW(AGGREGATORS_USABLE, "aggregators_usable", SUM,                                             \
        "Aggregators that a worker can use, over all workers (of a gateway)")                      \
    ROW(AGGREGATE_CALLS, "aggregate_calls", COUNTER, "Calls sent to aggregators (of a gateway)")   \
    ROW(AGGREGATE_CALLS_REFUSED, "aggregate_calls_refused", COUNTER,                               \
        "Calls that no aggregator could take, or that one did not execute (of a gateway)")         \
    ROW(AGGREGATE_CALLS_LOST, "aggregate_calls_lost", COUNTER,                                     \
        "Calls whose link broke before their answer came (of a gateway)")                          \
    ROW(AGGREGATE_SESSIONS, "aggregate_sessions", SUM, "Gateways' links (of an aggregator)")       \
    ROW(AGGREGATE_SERVED, "aggregate_served", COUNTER, "Calls of gateways (of an aggregator)")     \
    ROW(AGGREGATE_CALLS_UNDONE, "aggregate_calls_undone", COUNTER,                                 \
        "Calls that came too late, or not whole, and were not executed (of an aggregator)")        \
    ROW(AGGREGATE_FRAMES_REFUSED, "aggregate_frames_refused", COUNTER,                             \
        "Frames of gateways that could not be read (of an aggregator)")                            \
    ROW(AGGREGATE_RENEWALS, "aggregate_renewals", COUNTER,                                         \
        "Leases that gateways asked to renew (of an aggregator)")                                  \
    ROW(AGGREGATE_TOPICS, "aggregate_topics", SUM,                                                 \
        "Topics to which it subscribes for gateways (of an aggregator)")                           \
    ROW(AGGREGATE_EVENTS, "aggregate_events", COUNTER,                                             \
        "Events passed on to gateways (of an aggregator)")                                         \
    ROW(COUNTER_CORRUPTION, "durability_counter_corruption", COUNTER,                              \
        "Chats found with a missing or lagging sequence counter (SEV-1)")                          \
    ROW(DUPLICATE_SEQUENCE, "durability_duplicate_sequence", LARGEST_COUNTER,                      \
        "Messages refused because another one has their sequence (SEV-1); not of a remote ledger") \
    ROW(LEDGER_AVAILABLE, "durability_ledger_available", SMALLEST,                                 \
        "1 while the ledger answers, whatever its backend")                                        \
    ROW(DYNAMODB_CONFIGURED, "durability_dynamodb_configured", LARGEST,                            \
        "1 if the ledger is DynamoDB")                                                             \
    ROW(DYNAMODB_AVAILABLE, "durability_dynamodb_available", SMALLEST,                             \
        "1 while the ledger is DynamoDB and answers; 0 if it is another")                          \
    ROW(DYNAMODB_THROTTLE_COUNT, "durability_dynamodb_throttle_count", LARGEST_COUNTER,            \
        "Requests throttled by DynamoDB")                                                          \
    ROW(FEED_AVAILABLE, "durability_feed_available", SMALLEST,                                     \
        "1 while the feed accepts events, whatever its backend")                                   \
    ROW(KAFKA_CONFIGURED, "durability_kafka_configured", LARGEST, "1 if the feed is Kafka")        \
    ROW(KAFKA_AVAILABLE, "durability_kafka_available", SMALLEST,                                   \
        "1 while the feed is Kafka and accepts events; 0 if it is another")                        \
    ROW(KAFKA_PRODUCE_LATENCY_P99, "durability_kafka_produce_latency_p99", P99(PUBLISH),           \
        "Seconds to publish an event to the feed, 99th percentile")                                \
    ROW(PERSIST_LATENCY_P99, "durability_persist_latency_p99", P99(PERSIST),                       \
        "Seconds to make a message durable, 99th percentile")                                      \
    ROW(MESSAGES_PERSISTED, "durability_messages_persisted", COUNTER, "Messages made durable")     \
    ROW(MESSAGES_PERSISTED_RATE, "durability_messages_persisted_rate", RATE(MESSAGES_PERSISTED),   \
        "Messages made durable per second")                                                        \
    ROW(SENDS_FAILED, "durability_sends_failed", COUNTER,                                          \
        "Sends that the ledger or the feed did not accept")                                        \
    ROW(AVAILABILITY, "durability_availability", SHARE_BESIDE(MESSAGES_PERSISTED, SENDS_FAILED),   \
        "Share of sends made durable (0 while nothing is sent)")                                   \
    ROW(TRANSACTION_COMMITS, "durability_transaction_commits", LARGEST_COUNTER,                    \
        "Transactions that the ledger committed; 0 with a remote ledger")                          \
    ROW(TRANSACTION_CONFLICTS, "durability_transaction_conflicts", LARGEST_COUNTER,                \
        "Transactions that DynamoDB refused because they conflicted with another")                 \
    ROW(TRANSACTION_CONFLICT_RATE, "durability_transaction_conflict_rate",                         \
        SHARE_BESIDE(TRANSACTION_CONFLICTS, TRANSACTION_COMMITS),                                  \
        "Share of transactions that conflicted with another")                                      \
    ROW(IDEMPOTENCY_HITS, "durability_idempotency_hits", COUNTER,                                  \
        "Sends answered with the result of an earlier, identical send")                            \
    ROW(IDEMPOTENCY_HIT_RATE, "durability_idempotency_hit_rate",                                   \
        SHARE_BESIDE(IDEMPOTENCY_HITS, MESSAGES_PERSISTED),                                        \
        "Share of sends answered with the result of an earlier one")                               \
    ROW(FANOUT_CONSUMER_LAG, "fanout_kafka_consumer_lag", SUM,                                     \
        "Events persisted and not yet fanned out")                                                 \
    ROW(FANOUT_DELIVERED, "fanout_messages_delivered", COUNTER,                                    \
        "Messages queued for connections by fan-out")                                              \
    ROW(FANOUT_DELIVERED_RATE, "fanout_messages_delivered_rate", RATE(FANOUT_DELIVERED),           \
        "Messages queued for connections by fan-out, per second")                                  \
    ROW(FANOUT_DELIVERY_LAG_P99, "fanout_delivery_lag_p99", P99(DELIVERY),                         \
        "Seconds from the sending of a message to its delivery to gateways, 99th percentile")      \
    ROW(FANOUT_SENT, "fanout_messages_sent", COUNTER,                                              \
        "Messages sent to gateways by fan-out, once for each recipient on each gateway")           \
    ROW(FANOUT_SENT_RATE, "fanout_messages_sent_rate", RATE(FANOUT_SENT),                          \
        "Messages sent to gateways by fan-out, per second")                                        \
    ROW(FANOUT_EVENTS, "fanout_events_done", COUNTER, "Events fanned out")                         \
    ROW(FANOUT_SKIPPED, "fanout_delivery_skipped", COUNTER,                                        \
        "Events skipped after the last attempt, or because routes are unknown")                    \
    ROW(FANOUT_SKIP_RATE, "fanout_delivery_skip_rate",                                             \
        SHARE_BESIDE(FANOUT_SKIPPED, FANOUT_EVENTS), "Share of events skipped")                    \
    ROW(BROADCAST_MODE, "fanout_broadcast_mode", LARGEST,                                          \
        "1 while routes cannot be read and events go to all gateways")                             \
    ROW(BROADCASTS, "fanout_broadcasts", COUNTER,                                                  \
        "Events sent to all gateways because routes could not be read")                            \
    ROW(FANOUT_DUPLICATES, "fanout_duplicates_dropped", COUNTER,                                   \
        "Messages received again and dropped")                                                     \
    ROW(FANOUT_RETRY_COUNT, "fanout_retry_count", COUNTER, "Fan-out retries")                      \
    ROW(FANOUT_DLQ_DEPTH, "fanout_dlq_depth", LARGEST, "Dead letters stored")                      \
    ROW(FANOUT_DEAD_LETTERS, "fanout_dead_letters", COUNTER, "Events that became dead letters")    \
    ROW(FANOUT_DLQ_THRESHOLD, "fanout_dlq_alert_threshold_per_hour", LARGEST,                      \
        "The setting fanout.dlq.alert_threshold_per_hour")                                         \
    ROW(FANOUT_CONSUMER_RESTARTS, "fanout_consumer_restarts", COUNTER,                             \
        "Consumers of the feed opened again after a fatal error; 0 with the embedded feed")        \
    ROW(WEBHOOKS_SENT, "webhooks_sent", COUNTER, "Events that an endpoint has taken")              \
    ROW(WEBHOOKS_FAILED, "webhooks_failed", COUNTER,                                               \
        "Requests to endpoints without an answer of 2xx")                                          \
    ROW(WEBHOOKS_RETRIED, "webhooks_retried", COUNTER, "Events that are tried again")              \
    ROW(WEBHOOKS_DEAD, "webhooks_dead", COUNTER, "Events that were given up as dead letters")      \
    ROW(WEBHOOKS_DROPPED, "webhooks_dropped", COUNTER,                                             \
        "Events lost: beyond webhooks.backlog_max, or of best effort and not taken in time")       \
    ROW(WEBHOOKS_BACKLOG, "webhooks_backlog", SUM,                                                 \
        "Events that wait for an endpoint, of the queues that this process sends")                 \
    ROW(WEBHOOKS_OLDEST_AGE, "webhooks_oldest_age_seconds", LARGEST_MILLE,                         \
        "Age of the oldest event that waits for an endpoint")                                      \
    ROW(CLIENT_RESYNC_FORCED, "client_resync_forced", COUNTER,                                     \
        "Connections closed for slow reading, memory, age or shutdown, so that clients resync")    \
    ROW(CLIENT_RESYNC_FORCED_RATE, "client_resync_forced_rate", RATE(CLIENT_RESYNC_FORCED),        \
        "Resyncs forced on clients per second")

enum metric {
#define METRIC_ID(id, name, shown, help) METRIC_##id,
    METRICS_LIST(METRIC_ID)
#undef METRIC_ID
        METRIC_COUNT
};

/* id, name after "rollcall_", help */
#define METRICS_LATENCY_LIST(ROW)                                                                  \
    ROW(HEARTBEAT, "heartbeat_latency_seconds",                                                    \
        "From the arrival of a heartbeat until its answer is queued (sampled)")                    \
    ROW(PRESENCE, "presence_update_latency_seconds",                                               \
        "From a presence transition to its local delivery")                                        \
    ROW(TYPING, "typing_delivery_time_seconds", "From a typing notice to its delivery")            \
    ROW(CALL_RING, "call_ring_time_seconds", "From a call request to its answer")                  \
    ROW(PERSIST, "durability_persist_latency_seconds", "Time to make a message durable")           \
    ROW(PUBLISH, "durability_kafka_produce_latency_seconds",                                       \
        "Time to publish an event to the feed")                                                    \
    ROW(HOOK, "hooks_latency_seconds", "From a question to the application's answer")              \
    ROW(DELIVERY, "fanout_delivery_latency_seconds",                                               \
        "From the sending of a message to its delivery to gateways")

enum metrics_latency {
#define METRICS_LATENCY_ID(id, name, help) LATENCY_##id,
    METRICS_LATENCY_LIST(METRICS_LATENCY_ID)
#undef METRICS_LATENCY_ID
        LATENCY_COUNT
};

struct metrics_histogram {
    _Atomic uint64_t buckets[METRICS_HISTOGRAM_BUCKETS];
    _Atomic uint64_t sum_us;
};

/* The values of one worker. Only that worker writes them; any thread may read them. */
struct metrics {
    _Atomic int64_t values[METRIC_COUNT];
    struct metrics_histogram latencies[LATENCY_COUNT];
};

static inline void metrics_add(struct metrics *metrics, enum metric metric, int64_t amount)
{
    int64_t value = atomic_load_explicit(&metrics->values[metric], memory_order_relaxed);
    atomic_store_explicit(&metrics->values[metric], value + amount, memory_order_relaxed);
}

static inline void metrics_count(struct metrics *metrics, enum metric metric)
{
    metrics_add(metrics, metric, 1);
}

static inline void metrics_set(struct metrics *metrics, enum metric metric, int64_t value)
{
    atomic_store_explicit(&metrics->values[metric], value, memory_order_relaxed);
}

/* Adds one duration to a histogram; a negative one (the clock was read too late) counts as 0. */
void metrics_latency(struct metrics *metrics, enum metrics_latency latency, int64_t microseconds);

#endif
