/* The table of settings and its lookups. A row's name is its path in struct config, so the two
 * cannot drift apart; FIELD does not compile if the row's type differs from the field's. */
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

/* A list whose items may be mappings in the file. */
#define ENDPOINTS(path, rule_, help_)                                                              \
    {                                                                                              \
        .name = #path, .type = SETTING_LIST, .offset = FIELD(struct config_list, path),            \
        .initial = "", .rule = (rule_), .login = true, .mappings = true, .help = (help_)           \
    }

/* Tests use very short times, so a lower bound excludes only what cannot work. */
#define SHORTEST_MS 1
#define YEAR_MS (INT64_C(365) * 86400 * 1000)
#define COUNT_MAX ((int64_t)CONFIG_COUNT_MAX)
#define BYTES_MAX (INT64_C(1) << 40)

static const char *const profiles[] = {"realtime", "standard", "relaxed", NULL};
static const char *const managers[] = {"users", "application", NULL};
static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const acks[] = {"all", "1", "0", NULL};
static const char *const sasl[] = {"none", "plain", "scram-sha-256", "scram-sha-512", NULL};

/* Rows are not wrapped: one row, one setting. */
/* clang-format off */
static const struct setting table[] = {
    BOOL(dev, "false",
         "Development mode for a laptop: accepts loopback addresses only and turns auth.dev on unless it is set."),
    TEXT(data_dir, "./rollcall-data", &setting_rule_not_empty,
         "Directory for the development keys and, unless ledger.url names another place, for the SQLite file."),

    CHOICE(enum timing_profile, timing.profile, "realtime", profiles,
           "Chooses heartbeat interval, heartbeat timeout and expiry window together: 5/10/15, 30/40/45 or 30/60/90 seconds."),

    TEXT(gateway.listen, "127.0.0.1:8080", &setting_rule_address,
         "Address to listen on; port 0 chooses a free port."),
    BOOL(gateway.share_port, "false",
         "Several processes on this machine listen on gateway.listen together, each with this setting. Without it a process does not start on a port that another one has."),
    TEXT(gateway.node_id, "", &setting_rule_node_id,
         "Name of this process in the fleet. With several workers each worker appends its number. Empty: host name and process id."),
    COUNT(gateway.workers, "0", 0, 256,
          "Number of worker threads; each is a gateway of its own. 0: one per core."),
    BOOL(gateway.io_uring, "true",
         "Send to many connections with one system call, if the kernel has io_uring."),
    COUNT(gateway.max_connections, "0", 0, COUNT_MAX,
          "Maximum connections of the process. Beyond it a connection that has sent no request is closed in favour of a new one. 0: as many as the file descriptor limit allows."),
    BYTES(gateway.max_frame_bytes, "65536", 128, 1 << 30,
          "Largest message a client may send; a larger one closes the connection with 1009."),
    SECONDS(gateway.max_lifetime, "86400", 0, YEAR_MS,
            "Age at which a connection is closed and its client asked to reconnect. 0: never."),
    COUNT(gateway.max_lifetime_jitter_percent, "10", 0, 100,
          "Each connection's lifetime is shortened by a random part of max_lifetime_seconds, at most this percentage."),
    LIST(gateway.allowed_origins, &setting_rule_origin,
         "Origins from which browsers may connect. Empty: any origin that sends a valid token."),
    LIST(gateway.trusted_proxies, &setting_rule_network,
         "Networks of the proxies whose X-Forwarded-For or PROXY protocol names the address of a client."),
    BYTES(gateway.memory_limit_bytes, "0", 0, BYTES_MAX,
          "Memory that the process may use, of which most is queues, unfinished messages, bodies and parked sessions; beyond it parked sessions are dropped and the largest holders closed. Unset: three quarters of the memory of the cgroup or the machine. 0: no limit."),
    COUNT(gateway.handshakes_per_turn, "32", 1, 65536,
          "Tokens a worker verifies per turn of its loop, so that many handshakes at once do not starve established connections."),
    COUNT(gateway.pending_handshakes_max, "4096", 1, COUNT_MAX,
          "Maximum handshakes per worker that wait for the verification of their token; further ones are refused."),
    COUNT(gateway.listen_backlog, "4096", 1, 65535,
          "Connections the kernel queues before they are accepted."),
    BYTES(gateway.socket_unsent_bytes_max, "131072", 1024, 1 << 30,
          "Unsent bytes that a socket keeps in the kernel (TCP_NOTSENT_LOWAT); the rest waits in the outbound buffer."),
    SECONDS(gateway.close_timeout, "5", SHORTEST_MS, YEAR_MS,
            "Time a client has to complete a closing handshake."),
    TEXT(gateway.tls.certificate_file, "", NULL,
         "PEM certificate chain. Empty: serve without TLS."),
    TEXT(gateway.tls.key_file, "", NULL,
         "PEM private key of gateway.tls.certificate_file."),
    SECONDS(gateway.http.header_timeout, "10", SHORTEST_MS, YEAR_MS,
            "Time a client has to send the head of a request."),
    SECONDS(gateway.http.idle_timeout, "60", SHORTEST_MS, YEAR_MS,
            "Time an HTTP connection may stay open without a request."),
    BYTES(gateway.http.max_body_bytes, "65536", 128, 1 << 30,
          "Largest body of an HTTP request."),
    BYTES(gateway.http.max_list_body_bytes, "2097152", 128, 1 << 30,
          "Largest body of a request that carries a list, as of chat members, or goes to /v1/service: enough for 10,000 ids of 128 bytes."),
    COUNT(gateway.backpressure.inbound.rate_limit_per_second, "10", 1, COUNT_MAX,
          "Chat messages a connection may send per second."),
    COUNT(gateway.backpressure.inbound.rate_limit_burst, "20", 1, COUNT_MAX,
          "Chat messages a connection may send at once."),
    COUNT(gateway.backpressure.inbound.max_queue_depth, "100", 1, COUNT_MAX,
          "Maximum commands of a connection in flight; further ones are answered with SERVER_BUSY."),
    BYTES(gateway.backpressure.inbound.max_message_size_bytes, "4096", 1, 1 << 30,
          "Largest body of a chat message; a larger one is answered with MESSAGE_TOO_LARGE."),
    COUNT(gateway.backpressure.inbound.command_rate_per_second, "50", 1, COUNT_MAX,
          "Commands of all kinds that a connection may send per second."),
    COUNT(gateway.backpressure.inbound.command_rate_burst, "100", 1, COUNT_MAX,
          "Commands of all kinds that a connection may send at once."),
    COUNT(gateway.backpressure.outbound.max_buffer_messages, "1000", 1, CONFIG_BUFFER_MESSAGES_MAX,
          "Maximum messages queued for a connection."),
    BYTES(gateway.backpressure.outbound.max_buffer_bytes, "1048576", 1024, BYTES_MAX,
          "Maximum bytes queued for a connection."),
    COUNT(gateway.backpressure.outbound.warning_threshold_percent, "80", 1, 100,
          "Fill level of the outbound buffer that is logged, and below which a slow consumer counts as recovered."),
    COUNT(gateway.backpressure.outbound.critical_threshold_percent, "95", 2, 100,
          "Fill level of the outbound buffer at which the client receives SLOW_CONSUMER."),
    SECONDS(gateway.backpressure.outbound.grace_period, "5", 0, YEAR_MS,
            "Time a slow consumer has to recover before its connection is closed."),
    COUNT(gateway.circuit_breaker.failure_threshold, "5", 1, 10000,
          "Ledger failures within failure_window_seconds that open the circuit breaker."),
    SECONDS(gateway.circuit_breaker.failure_window, "30", SHORTEST_MS, YEAR_MS,
            "Period in which the failures of the ledger are counted."),
    SECONDS(gateway.circuit_breaker.open_duration, "30", SHORTEST_MS, YEAR_MS,
            "Time an open breaker refuses requests before it lets a probe through."),
    COUNT(gateway.circuit_breaker.half_open_probe_count, "1", 1, 1000,
          "Probes that must succeed before the breaker closes."),
    SECONDS(gateway.timeouts.durability_rpc, "5", SHORTEST_MS, YEAR_MS,
            "Time limit of a ledger request."),
    SECONDS(gateway.timeouts.heartbeat_interval, "5", SHORTEST_MS, YEAR_MS / 4,
            "Interval at which clients are asked to send heartbeats. Default from timing.profile."),
    SECONDS(gateway.timeouts.heartbeat_timeout, "10", SHORTEST_MS, YEAR_MS / 2,
            "Silence after which a connection is unhealthy: it is pinged and its lease is no longer renewed. Default from timing.profile."),
    SECONDS(gateway.timeouts.message, "30", SHORTEST_MS, YEAR_MS,
            "Time a client has to send the rest of a message or body that it has begun."),
    SECONDS(gateway.shutdown.drain_timeout, "30", 0, YEAR_MS,
            "Time over which connections are closed after SIGTERM."),

    TEXT(ops.listen, "", &setting_rule_optional_address,
         "Address for operators: /metrics, /readyz, /admin/… and the console are there, and not on gateway.listen. It serves with the TLS of gateway.tls. Empty: they are on gateway.listen."),

    SECONDS(presence.expiry_window, "15", SHORTEST_MS, YEAR_MS,
            "Silence after which a lease expires and its connection is closed. Default from timing.profile."),
    SECONDS(presence.idle, "300", SHORTEST_MS, YEAR_MS,
            "Time without activity after which a device is away."),
    SECONDS(presence.offline_grace, "0", 0, YEAR_MS,
            "Delay of an offline event, so that a page reload does not flicker."),
    MILLISECONDS(presence.min_dwell, "1000", 0, YEAR_MS,
                 "Least time between two published changes of one user's presence: the first goes at once, the latest state follows when the time is over. 0: publish every change."),
    COUNT(presence.max_subscriptions, "20", 0, 1000000,
          "Maximum users a connection may subscribe to."),
    COUNT(presence.max_open_chats, "20", 0, 1000000,
          "Maximum chats a connection may have open."),
    COUNT(presence.max_query_users, "100", 1, 1000000,
          "Maximum users in one query."),
    COUNT(presence.offline_records_max, "1000000", 0, COUNT_MAX,
          "Maximum records of offline users in the memory store; the oldest are dropped first."),
    SECONDS(presence.reap_interval, "0.5", SHORTEST_MS, YEAR_MS,
            "Interval at which expired leases are removed."),
    COUNT(presence.reap_batch_max, "256", 1, 1000000,
          "Maximum expired leases removed in one step."),

    SECONDS(typing.ttl, "5", SHORTEST_MS, YEAR_MS,
            "Lifetime of a typing notice that is not renewed."),
    COUNT(typing.rate_per_second, "1", 1, 1000000,
          "Typing notices per second, per user and chat; further ones are dropped."),

    COUNT(limits.connections_per_user, "50", 0, COUNT_MAX,
          "Maximum connections of a user over all devices and gateways. Beyond it the one that has been silent longest is closed with 4006. 0: no limit."),
    COUNT(limits.connections_per_address, "0", 0, COUNT_MAX,
          "Maximum connections of an address (of a /64 for IPv6) to this process; further ones are answered with 429. 0: no limit."),
    COUNT(limits.messages_per_second_per_user, "30", 0, COUNT_MAX,
          "Chat messages a user may send per second, over all devices and REST. 0: no limit."),
    COUNT(limits.messages_per_second_per_user_burst, "60", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.messages_per_second_per_user."),
    COUNT(limits.rest_per_second_per_user, "50", 0, COUNT_MAX,
          "REST requests a user may make per second. 0: no limit."),
    COUNT(limits.rest_per_second_per_user_burst, "100", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.rest_per_second_per_user."),
    COUNT(limits.contact_requests_per_hour, "60", 0, COUNT_MAX,
          "Contact requests a user may make per hour, in the whole fleet. 0: no limit."),
    COUNT(limits.contact_requests_per_hour_burst, "20", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.contact_requests_per_hour."),
    COUNT(limits.chats_per_hour, "60", 0, COUNT_MAX,
          "Chats a user may create per hour, in the whole fleet; each 100 members count as one more, and a member who is added later as a tenth. 0: no limit."),
    COUNT(limits.chats_per_hour_burst, "20", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.chats_per_hour."),
    COUNT(limits.settings_per_minute, "30", 0, COUNT_MAX,
          "Changes of settings, contacts, blocks and roles a user may make per minute, in the whole fleet. 0: no limit."),
    COUNT(limits.settings_per_minute_burst, "30", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.settings_per_minute."),
    COUNT(limits.reads_per_second_per_user, "100", 0, COUNT_MAX,
          "Presence queries, subscriptions, opened chats and pages of history a user may ask for per second; each 25 users in a query count as one more. 0: no limit."),
    COUNT(limits.reads_per_second_per_user_burst, "500", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.reads_per_second_per_user."),
    COUNT(limits.signals_per_second_per_user, "50", 0, COUNT_MAX,
          "Typing notices, read marks over REST and call commands a user may send per second. 0: no limit."),
    COUNT(limits.signals_per_second_per_user_burst, "200", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.signals_per_second_per_user."),
    COUNT(limits.calls_per_minute, "30", 0, COUNT_MAX,
          "Calls a user may start per minute. 0: no limit."),
    COUNT(limits.calls_per_minute_burst, "30", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.calls_per_minute."),
    COUNT(limits.service_per_second_per_key, "1000", 0, COUNT_MAX,
          "Requests to /v1/service that an API key, or a token's user, may make per second. An event for everyone counts as 100. 0: no limit."),
    COUNT(limits.service_per_second_per_key_burst, "2000", 1, COUNT_MAX,
          "How many of them at once, when the key did none for a while. Unset, it follows another value of limits.service_per_second_per_key."),
    COUNT(limits.events_per_second_per_user, "30", 0, COUNT_MAX,
          "Events of its own names that a user may send to hooks.event_url per second, over all devices. 0: no limit."),
    COUNT(limits.events_per_second_per_user_burst, "60", 1, COUNT_MAX,
          "How many of them at once, when the user did none for a while. Unset, it follows another value of limits.events_per_second_per_user."),

    CHOICE(enum contacts_managed_by, contacts.managed_by, "users", managers,
           "Who makes and ends contacts: users, by contact requests, or only the application, by /v1/service. Users may block in any case."),

    SECONDS(call.ring_timeout, "30", SHORTEST_MS, YEAR_MS,
            "Time a call rings before it ends with the reason timeout."),
    SECONDS(call.reconnect_grace, "2", 0, YEAR_MS,
            "Time a party that lost its connection has to return before the call ends."),
    COUNT(call.history_max, "100", 0, CONFIG_CALL_HISTORY_MAX,
          "Ended calls kept per user."),

    LIST(ice.servers, &setting_rule_ice_url,
         "STUN and TURN servers that GET /v1/ice names, such as stun:stun.example.org:3478. TURN servers among them have ice.username and ice.credential."),
    TEXT(ice.username, "", NULL,
         "User name of the TURN servers in ice.servers. Clients see it."),
    SECRET(ice.credential,
           "Password of the TURN servers in ice.servers. Clients see it: better use turn.secret."),
    LIST(turn.urls, &setting_rule_turn_url,
         "TURN servers with time-limited credentials, such as turn:turn.example.org:3478?transport=udp."),
    SECRET(turn.secret,
           "Secret that the TURN servers in turn.urls share (coturn: static-auth-secret). Clients get credentials made with it, never the secret."),
    SECONDS(turn.ttl, "43200", 1000, YEAR_MS,
            "How long the credentials for turn.urls are valid; clients ask again after that time."),

    TEXT(auth.keys_file, "", NULL,
         "File with the public keys that verify tokens, PEM or JWKS; read again on SIGHUP."),
    TEXT(auth.hmac_secret_file, "", NULL,
         "File with a secret of 32 bytes or more, shared with the issuer of tokens: accepts HS256; read again on SIGHUP."),
    TEXT(auth.jwks_url, "", &setting_rule_jwks_url,
         "URL at which the issuer of tokens publishes its keys as JWKS, beside auth.keys_file; plain http from loopback only. Empty: none."),
    TEXT(auth.jwks_ca_file, "", NULL,
         "File with the certificates that are trusted for auth.jwks_url. Empty: the system's."),
    SECONDS(auth.jwks_refresh, "300", 1000, YEAR_MS,
            "Time between two fetches of auth.jwks_url; an unknown kid causes one at once, at most once a second."),
    TEXT(auth.issuer, "", NULL,
         "Required iss claim of a token. Empty: any."),
    TEXT(auth.audience, "", NULL,
         "Required aud claim of a token. Empty: any."),
    BOOL(auth.dev, "false",
         "Accept tokens signed with a key pair generated in data_dir, and issue them at POST /dev/token; loopback only."),

    URL(state.url, "memory", &setting_rule_state_url,
        "Store of leases, presence, typing and calls. rediss://, rediss-cluster:// and rediss-sentinel:// use TLS. User and password may precede the host as USER:PASSWORD@; with Sentinel they are those of the master, and of sentinels that want a login."),
    TEXT(state.ca_file, "", NULL,
         "PEM certificates that Redis is verified with when TLS is used. Empty: those of the system."),
    TEXT(state.certificate_file, "", NULL,
         "PEM certificate chain of this client, for a Redis that asks for one (tls-auth-clients). Empty: none."),
    TEXT(state.key_file, "", NULL, "PEM private key of state.certificate_file."),
    LIST(state.aggregators, &setting_rule_address,
         "Addresses of the aggregators (rollcall aggregate) that hold the connections to Redis for this process; with them state.url is not used. All gateways name the same ones. Empty: none."),
    TEXT(ledger.url, "", &setting_rule_ledger_url,
         "Ledger of settings, contacts, chats and messages. Empty: a SQLite file in data_dir. The tables of dynamodb:// come from rollcall tables; docs/AWS.md says the rest."),
    TEXT(ledger.http_listen, "", &setting_rule_optional_address,
         "Address at which rollcall ledger serves /healthz, /readyz and /metrics over HTTP. Empty: none."),
    TEXT(feed.url, "local", &setting_rule_feed_url,
         "Feed that carries persisted messages to fan-out: the ledger's own outbox, or a Kafka topic. kafka+ssl:// uses TLS. See durability.kafka and fanout.kafka."),

    TEXT(peer.listen, "", &setting_rule_optional_address,
         "Address for peer links from other processes. Empty: none."),
    TEXT(peer.advertise, "", &setting_rule_optional_address,
         "Address at which other processes reach peer.listen. Empty: peer.listen itself, or the host name if that is 0.0.0.0 or [::]."),
    LIST(peer.peers, &setting_rule_address,
         "Addresses of other processes; the process ignores its own."),
    SECRET(peer.secret,
           "Shared secret of the peer links. Without it they are off."),
    TEXT(peer.tls.certificate_file, "", NULL,
         "PEM certificate chain for accepted peer links; with it all peer links use TLS."),
    TEXT(peer.tls.key_file, "", NULL,
         "PEM private key of peer.tls.certificate_file."),
    TEXT(peer.tls.ca_file, "", NULL,
         "PEM certificates that other processes are verified with; with it dialled peer links use TLS. Empty: those of the system."),

    MILLISECONDS(socketio.ping_interval, "25000", SHORTEST_MS, YEAR_MS,
                 "Interval at which Engine.IO clients are pinged."),
    MILLISECONDS(socketio.ping_timeout, "20000", SHORTEST_MS, YEAR_MS,
                 "Time an Engine.IO client has to answer a ping."),
    BYTES(socketio.max_payload_bytes, "1000000", 128, 1 << 30,
          "Largest Engine.IO message or polling request body; before CONNECT also limited by gateway.max_frame_bytes."),
    MILLISECONDS(socketio.connect_timeout, "45000", SHORTEST_MS, YEAR_MS,
                 "Time a Socket.IO client has to send CONNECT."),
    COUNT(socketio.pending_sessions_max, "10000", 1, COUNT_MAX,
          "Maximum Engine.IO sessions per worker that have not sent CONNECT; a further one replaces the oldest."),
    MILLISECONDS(socketio.recovery, "120000", 0, YEAR_MS,
                 "Time during which a Socket.IO session that lost its connection can be recovered. 0: off."),
    BOOL(socketio.adapter, "false",
         "Deliver what Node servers with @socket.io/redis-adapter, and @socket.io/redis-emitter, publish on the Redis of state.url for the namespace /."),
    TEXT(socketio.adapter_key, "socket.io", &setting_rule_not_empty,
         "The `key` option of those adapters and emitters."),

    TEXT(hooks.connect_url, "", &setting_rule_jwks_url,
         "URL that is asked before a connection is accepted; plain http to loopback only. Empty: every valid token is."),
    TEXT(hooks.event_url, "", &setting_rule_jwks_url,
         "URL to which events of names that are no commands are sent; plain http to loopback only. Empty: they are answered with INVALID_MESSAGE."),
    TEXT(hooks.secret_file, "", NULL,
         "File with the secret (whsec_…) that signs the questions, as webhooks are signed. Empty: webhooks.secret_file; without that they are not signed."),
    TEXT(hooks.ca_file, "", NULL,
         "File with the certificates that are trusted for both URLs. Empty: the system's."),
    SECONDS(hooks.timeout, "2", SHORTEST_MS, CONFIG_HOOK_TIMEOUT_MAX_MS,
            "Time the application has for an answer."),
    COUNT(hooks.in_flight_max, "100", 1, 10000,
          "Questions of each hook that the process has in flight; further ones are refused at once."),
    COUNT(hooks.circuit_breaker.failure_threshold, "5", 1, 10000,
          "Failures of a hook within failure_window_seconds that open its circuit breaker."),
    SECONDS(hooks.circuit_breaker.failure_window, "30", SHORTEST_MS, YEAR_MS,
            "Period in which the failures of a hook are counted."),
    SECONDS(hooks.circuit_breaker.open_duration, "30", SHORTEST_MS, YEAR_MS,
            "Time an open breaker asks nothing before it lets a probe through."),
    COUNT(hooks.circuit_breaker.half_open_probe_count, "1", 1, 1000,
          "Probes that must succeed before the breaker closes."),

    COUNT(durability.dynamodb.retry.max_attempts, "3", 1, 100,
          "Attempts of a call of DynamoDB that is throttled."),
    MILLISECONDS(durability.dynamodb.retry.initial_backoff, "100", 0, YEAR_MS,
                 "Wait before the second attempt, doubled for each further one."),
    MILLISECONDS(durability.dynamodb.retry.max_backoff, "5000", 0, YEAR_MS,
                 "Longest wait between two attempts."),
    COUNT(durability.dynamodb.transaction_conflict.max_attempts, "5", 1, 100,
          "Attempts of a transaction that conflicts with another."),
    MILLISECONDS(durability.dynamodb.transaction_conflict.jitter, "50", 0, YEAR_MS,
                 "Shortest wait between two attempts of such a transaction. What is added at random doubles with each, up to 500 ms in all."),
    TEXT(durability.kafka.topic, "messages.persisted", &setting_rule_not_empty,
         "Topic of the events: MessagePersisted, with the chat as the key."),
    COUNT(durability.kafka.partitions, "12", 1, 10000,
          "Partitions with which rollcall topics create makes the topic: the most consumers that can share the work."),
    COUNT(durability.kafka.replication, "3", 1, 100,
          "Replicas with which rollcall topics create makes the topics. From 3 on, two must store an event (min.insync.replicas)."),
    CHOICE(enum kafka_acks, durability.kafka.producer.acks, "all", acks,
           "Replicas that must store an event before it counts as published: all, the leader only, or none."),
    MILLISECONDS(durability.kafka.producer.timeout, "10000", SHORTEST_MS, YEAR_MS,
                 "Time after which Kafka's client gives an event up. The sender waits for no longer than gateway.timeouts.durability_rpc_seconds."),
    COUNT(durability.kafka.producer.retries, "3", 0, 1000,
          "Retries of a publish that a broker refused for now. 0 turns the idempotence of the producer off."),
    MILLISECONDS(durability.kafka.producer.retry_backoff, "100", 0, YEAR_MS,
                 "Wait between two attempts of a publish."),
    TEXT(durability.kafka.security.ca_file, "", NULL,
         "PEM certificates that brokers are verified with when TLS is used. Empty: those of the system."),
    TEXT(durability.kafka.security.certificate_file, "", NULL,
         "PEM certificate chain of this client, for brokers that ask for one. Empty: none."),
    TEXT(durability.kafka.security.key_file, "", NULL,
         "PEM private key of durability.kafka.security.certificate_file."),
    CHOICE(enum kafka_sasl, durability.kafka.security.sasl_mechanism, "none", sasl,
           "How the client proves who it is. plain sends the password, so use it with kafka+ssl:// only."),
    TEXT(durability.kafka.security.username, "", NULL,
         "User of the SASL mechanism."),
    SECRET(durability.kafka.security.password,
           "Password of the SASL mechanism."),
    TEXT(durability.kafka.security.password_file, "", NULL,
         "File with the password, which is better than a setting that others can read. Read at the start."),

    TEXT(fanout.kafka.consumer.group_id, "fanout-workers", &setting_rule_not_empty,
         "Consumer group of the fan-out workers, and of the gateways that consume."),
    COUNT(fanout.kafka.consumer.max_poll_records, "500", 1, 1000000,
          "Events that a consumer of Kafka has under way at most; beyond it its partitions wait. With the local feed: messages of the outbox that are read at a time to replay them."),
    BOOL(fanout.kafka.consumer.enable_auto_commit, "false",
         "Commit offsets when events arrive, not when they are delivered: events under way at a crash are skipped."),
    MILLISECONDS(fanout.kafka.consumer.session_timeout, "10000", 6000, 1800000,
                 "Time after which the brokers give the partitions of a consumer that died to others."),
    BOOL(fanout.in_gateway, "true",
         "With a Kafka feed: each worker of the gateways consumes it. Turn it off where rollcall fanout does that."),
    COUNT(fanout.retry.max_attempts, "3", 1, 100,
          "Attempts to deliver a message before fan-out skips it; clients get it with their next sync."),
    MILLISECONDS(fanout.retry.initial_backoff, "100", 0, YEAR_MS,
                 "Wait before the second attempt, doubled for each further one."),
    MILLISECONDS(fanout.retry.max_backoff, "1000", 0, YEAR_MS,
                 "Longest wait between two attempts."),
    TEXT(fanout.dlq.topic, "dead_letters.messages", &setting_rule_not_empty,
         "Topic of the dead letters of a Kafka feed."),
    COUNT(fanout.dlq.alert_threshold_per_hour, "100", 0, COUNT_MAX,
          "Dead letters per hour that raise the alert DeadLettersPileUp (deploy/prometheus_rules.yaml)."),

    URL(webhooks.url, "", &setting_rule_optional_http_url,
        "Endpoint of the application to which events are posted. Empty: only those of webhooks.endpoints."),
    ENDPOINTS(webhooks.endpoints, &setting_rule_webhook_endpoint,
              "Further endpoints, at most 8 in all: URLs, or in the file mappings {url, secret_file, types}, where types is a list such as [message.undelivered, call.missed]."),
    TEXT(webhooks.secret_file, "", NULL,
         "File with the secret that signs requests, \"whsec_\" and base64, for endpoints without one of their own. Empty: they are not signed."),
    TEXT(webhooks.ca_file, "", NULL,
         "Certificates to trust in requests to the endpoints, PEM. Empty: those of the system."),
    COUNT(webhooks.batch_max, "100", 1, 1000,
          "Events of one request."),
    MILLISECONDS(webhooks.batch, "200", 1, 60000,
                 "How long an event waits for others of the same request."),
    SECONDS(webhooks.give_up, "86400", SHORTEST_MS, YEAR_MS,
            "How long an event is tried again; then it is a dead letter (`rollcall webhooks`)."),
    SECONDS(webhooks.timeout, "10", SHORTEST_MS, 600000,
            "Time limit of one request."),
    COUNT(webhooks.backlog_max, "1000000", 1, COUNT_MAX,
          "Events that wait in the ledger for one endpoint; beyond it the oldest is dropped and counted. On DynamoDB about once a minute, and by samples."),

    BOOL(debug.echo, "false",
         "Serve the WebSocket GET /v1/echo for conformance suites."),
    CHOICE(enum log_level, log.level, "info", levels,
           "Least severe level that is logged."),
};
/* clang-format on */

#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))
static_assert(TABLE_COUNT <= (size_t)CONFIG_SETTINGS_MAX,
              "struct config stores an origin for each row");

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

bool setting_is_section(struct slice name)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (name.len > 0 && slice_starts_with(slice_of(table[i].name), name) &&
            table[i].name[name.len] == '.')
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
