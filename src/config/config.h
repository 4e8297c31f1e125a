/*
 * The configuration: everything an operator may choose, as one plain struct.
 *
 * Every setting is one row of the table in setting_table.c, which has its name, type, bounds,
 * default and help; the loader, the printer and docs/CONFIGURATION.md use that table. The struct
 * below mirrors the names: `gateway.listen` in the YAML file is `config.gateway.listen`. Only times
 * differ: they are written in seconds with decimals (`_seconds`) and stored in milliseconds
 * (`_ms`).
 *
 * Invariants after config_load() has returned true: every value is within the bounds of its row,
 * the values agree with each other (config_check.c), no string is NULL (an unset one is ""), no
 * list item is NULL.
 *
 * Threading: only config_load() writes it, before the workers start; then all threads share it as
 * `const struct config *`. Ownership: the struct owns its strings and lists until config_free();
 * readers borrow.
 */
#ifndef ROLLCALL_CONFIG_CONFIG_H
#define ROLLCALL_CONFIG_CONFIG_H

#include "log/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CONFIG_SETTINGS_MAX = 224, /* capacity for the rows of the table */
    CONFIG_ERROR_TEXT_MAX = 1024,
    CONFIG_FILE_BYTES_MAX = 1 << 20,
    CONFIG_LIST_ITEMS_MAX = 1024,
    CONFIG_WARNINGS_MAX = 16,
    CONFIG_BUFFER_MESSAGES_MAX = 32760, /* capacity of an outbound queue without its reserve */
    CONFIG_CALL_HISTORY_MAX = 1000,     /* how many the ledger keeps */
    CONFIG_HOOK_TIMEOUT_MAX_MS = 5000,  /* waiting and asking fit into what a drain waits for */
    CONFIG_COUNT_MAX = 1000000000,      /* of any count */
};

/* The source of a value, in rising precedence. */
enum config_source {
    CONFIG_FROM_DEFAULT, /* from the table, or derived from other settings (config_derive.h) */
    CONFIG_FROM_FILE,
    CONFIG_FROM_ENVIRONMENT,
    CONFIG_FROM_SET,
    CONFIG_FROM_FLAG,
};

struct config_origin {
    enum config_source source;
    unsigned line; /* in the file, from 1; 0 elsewhere */
};

struct config_list {
    const char **items;
    size_t count;
};

enum timing_profile { TIMING_REALTIME, TIMING_STANDARD, TIMING_RELAXED };
enum kafka_acks { KAFKA_ACKS_ALL, KAFKA_ACKS_LEADER, KAFKA_ACKS_NONE };
enum kafka_sasl { KAFKA_SASL_NONE, KAFKA_SASL_PLAIN, KAFKA_SASL_SCRAM_256, KAFKA_SASL_SCRAM_512 };

/* How often an operation is tried, and the waits between the attempts. */
struct config_retry {
    uint32_t max_attempts;
    int64_t initial_backoff_ms;
    int64_t max_backoff_ms;
};

struct config_inbound {
    uint32_t rate_limit_per_second; /* send_message only */
    uint32_t rate_limit_burst;
    uint32_t max_queue_depth;         /* commands in flight */
    size_t max_message_size_bytes;    /* body of a message */
    uint32_t command_rate_per_second; /* all commands together */
    uint32_t command_rate_burst;
};

struct config_outbound {
    uint32_t max_buffer_messages;
    size_t max_buffer_bytes;
    uint32_t warning_threshold_percent;
    uint32_t critical_threshold_percent;
    int64_t grace_period_ms;
};

struct config_circuit_breaker {
    uint32_t failure_threshold;
    int64_t failure_window_ms;
    int64_t open_duration_ms;
    uint32_t half_open_probe_count;
};

struct config_gateway {
    const char *listen;  /* HOST:PORT or [V6]:PORT; see config/address.h */
    bool share_port;     /* with other processes */
    const char *node_id; /* never empty */
    uint32_t workers;    /* 0: one per core */
    bool io_uring;
    uint32_t max_connections; /* of the process; 0: as the file descriptor limit allows */
    size_t max_frame_bytes;
    int64_t max_lifetime_ms; /* 0: unlimited */
    uint32_t max_lifetime_jitter_percent;
    struct config_list allowed_origins; /* empty: any */
    struct config_list trusted_proxies; /* networks; see base/ip_address.h */
    size_t memory_limit_bytes;          /* 0: off; unset: see app/gateway/memory_pressure.h */
    uint32_t handshakes_per_turn;
    uint32_t pending_handshakes_max;
    uint32_t listen_backlog;
    size_t socket_unsent_bytes_max;
    int64_t close_timeout_ms;
    struct {
        const char *certificate_file; /* empty: no TLS; set together with key_file */
        const char *key_file;
    } tls;
    struct {
        int64_t header_timeout_ms;
        int64_t idle_timeout_ms;
        size_t max_body_bytes;
        size_t max_list_body_bytes; /* where a list of chat members is expected */
    } http;
    struct {
        struct config_inbound inbound;
        struct config_outbound outbound;
    } backpressure;
    struct config_circuit_breaker circuit_breaker;
    struct {
        int64_t durability_rpc_ms;
        int64_t heartbeat_interval_ms; /* interval that clients are asked to keep */
        int64_t heartbeat_timeout_ms;  /* silence that makes a connection unhealthy */
        int64_t message_ms;            /* for the rest of a message or body that has begun */
    } timeouts;
    struct {
        int64_t drain_timeout_ms;
    } shutdown;
};

struct config_ops {
    const char *listen; /* HOST:PORT for operators; empty: gateway.listen */
};

struct config_presence {
    int64_t expiry_window_ms; /* length of a lease */
    int64_t idle_ms;
    int64_t offline_grace_ms;
    int64_t min_dwell_ms;
    uint32_t max_subscriptions;
    uint32_t max_open_chats; /* of a connection */
    uint32_t max_query_users;
    uint32_t offline_records_max;
    int64_t reap_interval_ms;
    uint32_t reap_batch_max;
};

struct config_typing {
    int64_t ttl_ms;
    uint32_t rate_per_second; /* per user and chat */
};

/* Budgets of a user, over all devices; a count of 0 means none, a burst is at least 1. */
struct config_limits {
    uint32_t connections_per_user;
    uint32_t connections_per_address; /* of the process */
    uint32_t messages_per_second_per_user;
    uint32_t messages_per_second_per_user_burst;
    uint32_t rest_per_second_per_user;
    uint32_t rest_per_second_per_user_burst;
    uint32_t contact_requests_per_hour;
    uint32_t contact_requests_per_hour_burst;
    uint32_t chats_per_hour;
    uint32_t chats_per_hour_burst;
    uint32_t settings_per_minute;
    uint32_t settings_per_minute_burst;
    uint32_t reads_per_second_per_user;
    uint32_t reads_per_second_per_user_burst;
    uint32_t signals_per_second_per_user;
    uint32_t signals_per_second_per_user_burst;
    uint32_t calls_per_minute;
    uint32_t calls_per_minute_burst;
    uint32_t service_per_second_per_key;
    uint32_t service_per_second_per_key_burst;
    uint32_t events_per_second_per_user; /* to hooks.event_url */
    uint32_t events_per_second_per_user_burst;
};

/* Who makes and ends contacts. */
enum contacts_managed_by { CONTACTS_MANAGED_BY_USERS, CONTACTS_MANAGED_BY_APPLICATION };

struct config_contacts {
    enum contacts_managed_by managed_by;
};

struct config_call {
    int64_t ring_timeout_ms;
    int64_t reconnect_grace_ms;
    uint32_t history_max;
};

struct config_ice {
    struct config_list servers;
    const char *username; /* of the TURN servers among them; set together with credential */
    const char *credential;
};

struct config_turn {
    struct config_list urls; /* set together with secret */
    const char *secret;
    int64_t ttl_ms;
};

struct config_auth {
    const char *keys_file;        /* `dev`, one of these, or the issuer is needed */
    const char *hmac_secret_file; /* empty: HS256 is refused */
    const char *jwks_url;         /* empty: no issuer is asked for keys */
    const char *jwks_ca_file;     /* empty: the system's certificates */
    int64_t jwks_refresh_ms;
    const char *issuer;   /* empty: not checked */
    const char *audience; /* empty: not checked */
    bool dev;             /* a generated key pair and POST /dev/token */
};

struct config_peer {
    const char *listen;    /* empty: none */
    const char *advertise; /* empty: `listen`, or the host name if that is 0.0.0.0 or [::] */
    struct config_list peers;
    const char *secret; /* empty: peer links are off */
    struct {
        const char *certificate_file; /* empty: no TLS for accepted links; set with key_file */
        const char *key_file;
        const char *ca_file; /* with this or a certificate, dialled links use TLS */
    } tls;
};

struct config_socketio {
    int64_t ping_interval_ms;
    int64_t ping_timeout_ms;
    size_t max_payload_bytes;
    int64_t connect_timeout_ms;
    uint32_t pending_sessions_max;
    int64_t recovery_ms;     /* 0: none */
    bool adapter;            /* listen to Node servers on the same Redis */
    const char *adapter_key; /* never empty */
};

/* Questions to the application; an empty URL: none are asked. */
struct config_hooks {
    const char *connect_url;
    const char *event_url;
    const char *secret_file; /* empty: unsigned */
    const char *ca_file;     /* empty: the system's certificates */
    int64_t timeout_ms;
    uint32_t in_flight_max; /* of each hook, in the process */
    struct config_circuit_breaker circuit_breaker;
};

struct config_dynamodb {
    struct config_retry retry;
    struct {
        uint32_t max_attempts;
        int64_t jitter_ms;
    } transaction_conflict;
};

struct config_durability {
    struct config_dynamodb dynamodb;
    struct {
        const char *topic; /* of the events */
        uint32_t partitions;
        uint32_t replication;
        struct {
            enum kafka_acks acks;
            int64_t timeout_ms;
            uint32_t retries;
            int64_t retry_backoff_ms;
        } producer;
        struct {
            const char *ca_file; /* empty: those of the system */
            const char *certificate_file;
            const char *key_file;
            enum kafka_sasl sasl_mechanism;
            const char *username;
            const char *password;
            const char *password_file;
        } security;
    } kafka;
};

struct config_fanout {
    struct {
        struct {
            const char *group_id;
            uint32_t max_poll_records;
            bool enable_auto_commit;
            int64_t session_timeout_ms;
        } consumer;
    } kafka;
    bool in_gateway; /* with a Kafka feed: the gateways consume it */
    struct config_retry retry;
    struct {
        const char *topic;
        uint32_t alert_threshold_per_hour;
    } dlq;
};

struct config_webhooks {
    const char *url; /* empty: none, or those of `endpoints` */
    struct config_list endpoints;
    const char *secret_file; /* empty: requests are not signed */
    const char *ca_file;     /* empty: the system's certificates */
    uint32_t batch_max;
    int64_t batch_ms;
    int64_t give_up_ms;
    int64_t timeout_ms;
    uint32_t backlog_max;
};

struct config {
    bool dev; /* development: loopback only; turns auth.dev on unless that is set */
    const char *data_dir;
    struct {
        enum timing_profile profile;
    } timing;
    struct config_gateway gateway;
    struct config_ops ops;
    struct config_presence presence;
    struct config_typing typing;
    struct config_contacts contacts;
    struct config_call call;
    struct config_ice ice;
    struct config_turn turn;
    struct config_limits limits;
    struct config_auth auth;
    struct {
        const char *url;     /* memory, redis://…, redis-cluster://…, redis-sentinel://… */
        const char *ca_file; /* empty: those of the system */
        const char *certificate_file; /* empty: Redis is shown none; set with key_file */
        const char *key_file;
        struct config_list aggregators; /* not empty: instead of `url` */
    } state;
    struct {
        const char *url; /* sqlite:…, remote://…, dynamodb://…; empty: SQLite in data_dir */
        const char *http_listen; /* of rollcall ledger; empty: none */
    } ledger;
    struct {
        const char *url; /* local, kafka://…, kafka+ssl://… */
    } feed;
    struct config_peer peer;
    struct config_socketio socketio;
    struct config_hooks hooks;
    struct config_durability durability;
    struct config_fanout fanout;
    struct config_webhooks webhooks;
    struct {
        bool echo;
    } debug;
    struct {
        enum log_level level;
    } log;

    struct config_origin origins[CONFIG_SETTINGS_MAX]; /* by row of the table */
};

/* A command-line flag that sets a setting. */
struct config_flag {
    const char *flag; /* as typed, such as "--listen" */
    const char *setting;
    const char *value;
};

/* The sources of a configuration; config_load() borrows them until it returns. */
struct config_inputs {
    const char *file;               /* NULL: none */
    char *const *environment;       /* as environ, NULL-terminated; NULL: none */
    const char *const *assignments; /* each KEY=VALUE of a --set, in order */
    size_t assignment_count;
    const struct config_flag *flags;
    size_t flag_count;
    const char *default_node_id; /* if gateway.node_id is unset; NULL: "rollcall" */
};

/* One sentence for the operator: where, what was found, what was expected. Never contains a
 * secret. */
struct config_error {
    char text[CONFIG_ERROR_TEXT_MAX];
};

/*
 * Fills *config from the inputs. A later source of enum config_source overrides an earlier one, but
 * every source is checked completely: a wrong value in the file is an error even if a flag
 * overrides it. On failure returns false, sets *error and leaves *config zeroed, with nothing to
 * free.
 */
bool config_load(struct config *config, const struct config_inputs *inputs,
                 struct config_error *error);

/* Frees what the struct owns and zeroes it. Safe on a zeroed struct. */
void config_free(struct config *config);

/* Returns "default", "file", "env", "set" or "flag". */
const char *config_source_name(enum config_source source);

/* Writes up to CONFIG_WARNINGS_MAX sentences about legal values that are probably mistakes; returns
 * how many. */
size_t config_warnings(const struct config *config, struct config_error out[CONFIG_WARNINGS_MAX]);

/* The same about ignored environment variables with our prefix. */
size_t config_environment_warnings(char *const *environment,
                                   struct config_error out[CONFIG_WARNINGS_MAX]);

/* Prints the effective configuration as YAML, each value with its source in a comment. Loading it
 * gives the same values, except secrets, which are comments without their value. */
void config_print(const struct config *config, FILE *out);

/* Writes docs/CONFIGURATION.md. */
void config_write_reference(FILE *out);

#endif
