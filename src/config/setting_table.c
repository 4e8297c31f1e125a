/* The table of settings, and how a row is found. A row's name is its path in struct config, so the
 * two cannot drift apart, and FIELD refuses to compile where the row's type is not the field's. */
#include "config/setting.h"

#include "config/nearest.h"

#include <assert.h>

#define FIELD(type_, path)                                                                         \
    (offsetof(struct config, path) + _Generic(((struct config *)0)->path, type_ : 0))

#define NUMBER(kind, type_, name_, path, initial_, min_, max_, help_)                              \
    {                                                                                              \
        .name = (name_), .type = (kind), .offset = FIELD(type_, path), .initial = (initial_),      \
        .min = (min_), .max = (max_), .help = (help_)                                              \
    }
#define COUNT(path, initial_, min_, max_, help_)                                                   \
    NUMBER(SETTING_COUNT, uint32_t, #path, path, initial_, min_, max_, help_)
#define BYTES(path, initial_, min_, max_, help_)                                                   \
    NUMBER(SETTING_BYTES, size_t, #path, path, initial_, min_, max_, help_)
#define SECONDS(path, initial_, min_, max_, help_)                                                 \
    NUMBER(SETTING_SECONDS, int64_t, #path "_seconds", path##_ms, initial_, min_, max_, help_)
#define MILLISECONDS(path, initial_, min_, max_, help_)                                            \
    NUMBER(SETTING_MILLISECONDS, int64_t, #path "_ms", path##_ms, initial_, min_, max_, help_)
#define BOOL(path, initial_, help_)                                                                \
    {                                                                                              \
        .name = #path, .type = SETTING_BOOL, .offset = FIELD(bool, path), .initial = (initial_),   \
        .help = (help_)                                                                            \
    }
#define CHOICE(type_, path, initial_, choices_, help_)                                             \
    {                                                                                              \
        .name = #path, .type = SETTING_CHOICE, .offset = FIELD(type_, path),                       \
        .initial = (initial_), .choices = (choices_), .help = (help_)                              \
    }
#define TEXT(path, initial_, rule_, help_)                                                         \
    {                                                                                              \
        .name = #path, .type = SETTING_TEXT, .offset = FIELD(const char *, path),                  \
        .initial = (initial_), .rule = (rule_), .help = (help_)                                    \
    }
#define SECRET(path, help_)                                                                        \
    {                                                                                              \
        .name = #path, .type = SETTING_TEXT, .offset = FIELD(const char *, path), .initial = "",   \
        .secret = true, .help = (help_)                                                            \
    }
#define URL(path, initial_, rule_, help_)                                                          \
    {                                                                                              \
        .name = #path, .type = SETTING_TEXT, .offset = FIELD(const char *, path),                  \
        .initial = (initial_), .rule = (rule_), .login = true, .help = (help_)                     \
    }
#define LIST(path, rule_, help_)                                                                   \
    {                                                                                              \
        .name = #path, .type = SETTING_LIST, .offset = FIELD(struct config_list, path),            \
        .initial = "", .rule = (rule_), .help = (help_)                                            \
    }

/* Tests and laptops turn times far down, so a lower bound only keeps out what could not work. */
#define SHORTEST_MS 1
#define YEAR_MS (INT64_C(365) * 86400 * 1000)
#define COUNT_MAX INT64_C(1000000000)
#define BYTES_MAX (INT64_C(1) << 40)

static const char *const profiles[] = {"realtime", "standard", "relaxed", NULL};
static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const acks[] = {"all", "1", "0", NULL};

/* A row reads as a row, whatever its length. */
/* clang-format off */
static const struct setting table[] = {
    BOOL(dev, "false",
         "For a laptop: loopback addresses only, and auth.dev on unless that is set."),
    TEXT(data_dir, "./rollcall-data", &setting_rule_not_empty,
         "Directory of the development keys and, unless ledger.url says otherwise, of the SQLite file."),

    CHOICE(enum timing_profile, timing.profile, "realtime", profiles,
           "Heartbeat interval, heartbeat timeout and expiry window in one word: 5/10/15, 30/40/45 or 30/60/90 seconds."),

    TEXT(gateway.listen, "127.0.0.1:8080", &setting_rule_address,
         "Address to serve on; port 0 takes a free one."),
    TEXT(gateway.node_id, "", &setting_rule_node_id,
         "Name of this process in the fleet; with several workers each adds its number. Empty is host name and process id."),
    COUNT(gateway.workers, "0", 0, 256,
          "Worker threads, each a gateway of its own; 0 is one per core."),
    BOOL(gateway.io_uring, "true",
         "Send to many connections in one system call, where the kernel offers io_uring."),
    COUNT(gateway.max_connections, "0", 0, COUNT_MAX,
          "Connections the process holds at most, beyond which one that asks for nothing gives way; 0 is what the file descriptor limit allows."),
    BYTES(gateway.max_frame_bytes, "65536", 128, 1 << 30,
          "Largest message a client may send; a larger one closes the connection with 1009."),
    SECONDS(gateway.max_lifetime, "86400", 0, YEAR_MS,
            "Age at which a connection is asked to come again; 0 is never."),
    COUNT(gateway.max_lifetime_jitter_percent, "10", 0, 100,
          "Share of max_lifetime_seconds by which each connection's is shortened at random."),
    LIST(gateway.allowed_origins, &setting_rule_origin,
         "Origins browsers may connect from; empty allows any that sends a valid token."),
    BYTES(gateway.memory_limit_bytes, "0", 0, BYTES_MAX,
          "Resident memory above which connections are shed; 0 is no limit."),
    COUNT(gateway.handshakes_per_turn, "32", 1, 65536,
          "Handshakes a worker completes per turn of its loop, so that a storm cannot starve the connected."),
    COUNT(gateway.pending_handshakes_max, "4096", 1, COUNT_MAX,
          "Connections of a worker that have not completed their handshake; more are refused."),
    COUNT(gateway.listen_backlog, "4096", 1, 65535,
          "Connections the kernel queues before they are accepted."),
    BYTES(gateway.socket_unsent_bytes_max, "131072", 1024, 1 << 30,
          "Unsent bytes a socket keeps in the kernel (TCP_NOTSENT_LOWAT); the rest waits in the outbound buffer."),
    SECONDS(gateway.close_timeout, "5", SHORTEST_MS, YEAR_MS,
            "Time a peer has to complete a closing handshake."),
    TEXT(gateway.tls.certificate_file, "", NULL,
         "PEM certificate chain; empty serves without TLS."),
    TEXT(gateway.tls.key_file, "", NULL,
         "PEM private key of the certificate."),
    SECONDS(gateway.http.header_timeout, "10", SHORTEST_MS, YEAR_MS,
            "Time a client has to send a request's head."),
    SECONDS(gateway.http.idle_timeout, "60", SHORTEST_MS, YEAR_MS,
            "Time an HTTP connection is kept without a request."),
    BYTES(gateway.http.max_body_bytes, "65536", 128, 1 << 30,
          "Largest body of an HTTP request."),
    BYTES(gateway.http.max_list_body_bytes, "2097152", 128, 1 << 30,
          "Largest body where a list of members is expected: room for 10,000 ids of 128 bytes and more."),
    COUNT(gateway.backpressure.inbound.rate_limit_per_second, "10", 1, COUNT_MAX,
          "Chat messages a connection may send per second."),
    COUNT(gateway.backpressure.inbound.rate_limit_burst, "20", 1, COUNT_MAX,
          "Chat messages it may send at once."),
    COUNT(gateway.backpressure.inbound.max_queue_depth, "100", 1, COUNT_MAX,
          "Requests of a connection in flight; more are answered SERVER_BUSY."),
    BYTES(gateway.backpressure.inbound.max_message_size_bytes, "4096", 1, 1 << 30,
          "Largest body of a chat message; a larger one is answered MESSAGE_TOO_LARGE."),
    COUNT(gateway.backpressure.inbound.command_rate_per_second, "50", 1, COUNT_MAX,
          "Commands of every kind a connection may send per second."),
    COUNT(gateway.backpressure.inbound.command_rate_burst, "100", 1, COUNT_MAX,
          "Commands it may send at once."),
    COUNT(gateway.backpressure.outbound.max_buffer_messages, "1000", 1, CONFIG_BUFFER_MESSAGES_MAX,
          "Messages waiting for a connection at most."),
    BYTES(gateway.backpressure.outbound.max_buffer_bytes, "1048576", 1024, BYTES_MAX,
          "Bytes waiting for a connection at most."),
    COUNT(gateway.backpressure.outbound.warning_threshold_percent, "80", 1, 100,
          "Fill of the outbound buffer that is logged, and below which a slow consumer has recovered."),
    COUNT(gateway.backpressure.outbound.critical_threshold_percent, "95", 2, 100,
          "Fill of the outbound buffer at which the client is told SLOW_CONSUMER."),
    SECONDS(gateway.backpressure.outbound.grace_period, "5", 0, YEAR_MS,
            "Time a slow consumer has to recover before it is closed."),
    COUNT(gateway.circuit_breaker.failure_threshold, "5", 1, 10000,
          "Failures of the durability plane that open the breaker."),
    SECONDS(gateway.circuit_breaker.failure_window, "30", SHORTEST_MS, YEAR_MS,
            "Window in which those failures are counted."),
    SECONDS(gateway.circuit_breaker.open_duration, "30", SHORTEST_MS, YEAR_MS,
            "Time an open breaker refuses requests before it lets a probe through."),
    COUNT(gateway.circuit_breaker.half_open_probe_count, "1", 1, 1000,
          "Probes that must succeed to close the breaker again."),
    SECONDS(gateway.timeouts.durability_rpc, "5", SHORTEST_MS, YEAR_MS,
            "Time limit of a request to the durability plane."),
    SECONDS(gateway.timeouts.heartbeat_interval, "5", SHORTEST_MS, YEAR_MS / 4,
            "How often clients are asked to send a heartbeat. Follows timing.profile."),
    SECONDS(gateway.timeouts.heartbeat_timeout, "10", SHORTEST_MS, YEAR_MS / 2,
            "Silence after which a connection is unhealthy: it is pinged and its lease no longer renewed. Follows timing.profile."),
    SECONDS(gateway.shutdown.drain_timeout, "30", 0, YEAR_MS,
            "Time over which connections are closed on SIGTERM."),

    SECONDS(presence.expiry_window, "15", SHORTEST_MS, YEAR_MS,
            "Silence after which a lease is gone and the connection closed. Follows timing.profile."),
    SECONDS(presence.idle, "300", SHORTEST_MS, YEAR_MS,
            "Time without activity after which a device is away."),
    SECONDS(presence.offline_grace, "0", 0, YEAR_MS,
            "Time an offline event is held back, so that a page reload does not flicker."),
    COUNT(presence.max_subscriptions, "20", 0, 1000000,
          "Users a connection may subscribe to."),
    COUNT(presence.max_open_chats, "20", 0, 1000000,
          "Chats a connection may have open."),
    COUNT(presence.max_query_users, "100", 1, 1000000,
          "Users one query may name."),
    COUNT(presence.offline_records_max, "1000000", 0, COUNT_MAX,
          "Records of offline users the memory store keeps; the oldest go first."),
    SECONDS(presence.reap_interval, "0.5", SHORTEST_MS, YEAR_MS,
            "How often expired leases are looked for."),
    COUNT(presence.reap_batch_max, "256", 1, 1000000,
          "Expired leases removed in one step."),

    SECONDS(typing.ttl, "5", SHORTEST_MS, YEAR_MS,
            "Time a typing notice lasts unless renewed."),
    COUNT(typing.rate_per_second, "1", 1, 1000000,
          "Typing notices per second, user and chat; more are dropped."),

    SECONDS(call.ring_timeout, "30", SHORTEST_MS, YEAR_MS,
            "Time a call rings before it ends with the reason timeout."),
    SECONDS(call.reconnect_grace, "2", 0, YEAR_MS,
            "Time a party that lost its connection has to come back before the call ends."),
    COUNT(call.history_max, "100", 0, CONFIG_CALL_HISTORY_MAX,
          "Ended calls kept per user."),

    TEXT(auth.keys_file, "", NULL,
         "Public keys that sign tokens, PEM or JWKS; read again on SIGHUP."),
    TEXT(auth.issuer, "", NULL,
         "The iss a token must carry; empty accepts any."),
    TEXT(auth.audience, "", NULL,
         "The aud a token must carry; empty accepts any."),
    BOOL(auth.dev, "false",
         "Accept tokens of a key pair generated in data_dir and hand them out at POST /dev/token; loopback only."),

    URL(state.url, "memory", &setting_rule_state_url,
        "Where leases, presence, typing and calls live; rediss:// and rediss-cluster:// speak TLS. A user and a password may stand before the host, as USER:PASSWORD@."),
    TEXT(state.ca_file, "", NULL,
         "Certificates that Redis is trusted by where TLS is spoken, PEM; empty is the system's."),
    TEXT(ledger.url, "", &setting_rule_ledger_url,
         "Where settings, contacts, chats and messages live; empty is a SQLite file in data_dir. dynamodb:// is reserved: this version does not start with it."),
    TEXT(ledger.http_listen, "", &setting_rule_optional_address,
         "Address at which rollcall ledger answers /healthz, /readyz and /metrics over HTTP; empty opens none."),
    TEXT(feed.url, "local", &setting_rule_feed_url,
         "How persisted messages reach the fan-out. kafka:// is reserved: this version does not start with it."),

    TEXT(peer.listen, "", &setting_rule_optional_address,
         "Address for links from other gateways; empty opens none."),
    TEXT(peer.advertise, "", &setting_rule_optional_address,
         "Where other gateways reach peer.listen; empty is that address, or the machine's name where it is 0.0.0.0 or [::]."),
    LIST(peer.peers, &setting_rule_address,
         "Addresses of other gateways; one's own among them is ignored."),
    SECRET(peer.secret,
           "Shared secret of the peer links; without one they are off."),
    TEXT(peer.tls.certificate_file, "", NULL,
         "Certificate chain for links from others, PEM; with it all peer links speak TLS."),
    TEXT(peer.tls.key_file, "", NULL,
         "Private key of that certificate, PEM."),
    TEXT(peer.tls.ca_file, "", NULL,
         "Certificates that others are trusted by, PEM; with it links to others speak TLS. Empty is the system's."),

    MILLISECONDS(socketio.ping_interval, "25000", SHORTEST_MS, YEAR_MS,
                 "How often Engine.IO clients are pinged."),
    MILLISECONDS(socketio.ping_timeout, "20000", SHORTEST_MS, YEAR_MS,
                 "Time an Engine.IO client has to answer a ping."),
    BYTES(socketio.max_payload_bytes, "1000000", 128, 1 << 30,
          "Largest Engine.IO message or body of a polling request; before CONNECT no more than gateway.max_frame_bytes."),
    MILLISECONDS(socketio.connect_timeout, "45000", SHORTEST_MS, YEAR_MS,
                 "Time a Socket.IO client has to send CONNECT."),
    COUNT(socketio.pending_sessions_max, "10000", 1, COUNT_MAX,
          "Socket.IO sessions of a worker that have not connected yet, at most; the oldest gives way to one more."),
    MILLISECONDS(socketio.recovery, "120000", 0, YEAR_MS,
                 "How long a Socket.IO session that was cut off can be recovered; 0 turns it off."),

    COUNT(durability.dynamodb.retry.max_attempts, "3", 1, 100,
          "Attempts of a request. Reserved for the DynamoDB backend."),
    MILLISECONDS(durability.dynamodb.retry.initial_backoff, "100", 0, YEAR_MS,
                 "Wait before the second attempt, doubled for each further one. Reserved for the DynamoDB backend."),
    MILLISECONDS(durability.dynamodb.retry.max_backoff, "5000", 0, YEAR_MS,
                 "Longest such wait. Reserved for the DynamoDB backend."),
    COUNT(durability.dynamodb.transaction_conflict.max_attempts, "5", 1, 100,
          "Attempts of a transaction that met another. Reserved for the DynamoDB backend."),
    MILLISECONDS(durability.dynamodb.transaction_conflict.jitter, "50", 0, YEAR_MS,
                 "Random wait of at most this between them. Reserved for the DynamoDB backend."),
    CHOICE(enum kafka_acks, durability.kafka.producer.acks, "all", acks,
           "Replicas that must have an event before it counts as published. Reserved for the Kafka backend."),
    MILLISECONDS(durability.kafka.producer.timeout, "10000", SHORTEST_MS, YEAR_MS,
                 "Time limit of a publish. Reserved for the Kafka backend."),
    COUNT(durability.kafka.producer.retries, "3", 0, 1000,
          "Retries of a publish. Reserved for the Kafka backend."),
    MILLISECONDS(durability.kafka.producer.retry_backoff, "100", 0, YEAR_MS,
                 "Wait between them. Reserved for the Kafka backend."),

    TEXT(fanout.kafka.consumer.group_id, "fanout-workers", &setting_rule_not_empty,
         "Consumer group of the gateways. Reserved for the Kafka backend."),
    COUNT(fanout.kafka.consumer.max_poll_records, "500", 1, 1000000,
          "Events taken in one poll. Reserved for the Kafka backend."),
    BOOL(fanout.kafka.consumer.enable_auto_commit, "false",
         "Commit offsets before events are delivered. Reserved for the Kafka backend."),
    COUNT(fanout.retry.max_attempts, "3", 1, 100,
          "Tries to deliver an event to a gateway before it is skipped; a sync heals the gap."),
    MILLISECONDS(fanout.retry.initial_backoff, "100", 0, YEAR_MS,
                 "Wait before the second try, doubled for each further one."),
    MILLISECONDS(fanout.retry.max_backoff, "1000", 0, YEAR_MS,
                 "Longest such wait."),
    TEXT(fanout.dlq.topic, "dead_letters.messages", &setting_rule_not_empty,
         "Stream of the events that cannot be processed. Reserved for the Kafka backend."),
    COUNT(fanout.dlq.alert_threshold_per_hour, "100", 0, COUNT_MAX,
          "Dead letters per hour that raise an alert. Reserved: deploy/prometheus_rules.yaml alerts on the first."),

    BOOL(debug.echo, "false",
         "Serve the WebSocket GET /v1/echo, for conformance suites."),
    CHOICE(enum log_level, log.level, "info", levels,
           "Least severe level that is logged."),
};
/* clang-format on */

#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))
static_assert(TABLE_COUNT <= (size_t)CONFIG_SETTINGS_MAX,
              "struct config has an origin for each row");

size_t setting_count(void)
{
    return TABLE_COUNT;
}

const struct setting *setting_at(size_t index)
{
    assert(index < TABLE_COUNT);
    return &table[index];
}

size_t setting_index(const struct setting *setting)
{
    return (size_t)(setting - table);
}

const struct setting *setting_find(struct slice name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (slice_is(name, table[i].name))
            return &table[i];
    return NULL;
}

static bool is_in_section(const struct setting *setting, struct slice section)
{
    return slice_starts_with(slice_of(setting->name), section) && setting->name[section.len] == '.';
}

bool setting_is_section(struct slice name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (name.len > 0 && is_in_section(&table[i], name))
            return true;
    return false;
}

struct slice setting_nearest(struct slice name)
{
    struct nearest nearest = nearest_to(name);
    for (size_t i = 0; i < TABLE_COUNT; i++) {
        struct slice full = slice_of(table[i].name);
        nearest_offer(&nearest, full);
        for (size_t at = 0; at < full.len; at++)
            if (full.data[at] == '.')
                nearest_offer(&nearest, slice_first(full, at));
    }
    return nearest.best;
}

bool setting_is_explicit(const struct config *config, const char *name)
{
    const struct setting *setting = setting_find(slice_of(name));
    assert(setting);
    return config->origins[setting_index(setting)].source != CONFIG_FROM_DEFAULT;
}
