/*
 * Real Redis servers for tests: each a process of its own on a free loopback port, with its files in a
 * temporary folder. It is ended by its process id, and also when the test ends.
 *
 *     struct redis_server server;
 *     redis_server_start(&server, REDIS_OPTIONS("--requirepass", "secret"));
 *     redis_server_ask(&server, reply, "SET", "key", "value", NULL);
 *     redis_server_stop(&server);
 *
 * A cluster is REDIS_CLUSTER_MASTERS masters, each with a third of the slots, followed by a replica of each.
 * Any failure fails the current test (cmocka).
 */
#ifndef ROLLCALL_TESTS_REDIS_SERVER_H
#define ROLLCALL_TESTS_REDIS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    REDIS_SERVER_OPTIONS_MAX = 24,
    REDIS_SERVER_REPLY_MAX = 8192,
    REDIS_SERVER_PATH_MAX = 64,
    REDIS_CLUSTER_MASTERS = 3,
    REDIS_CLUSTER_SERVERS = 2 * REDIS_CLUSTER_MASTERS,
};

/* Options of redis-server, ended by NULL. */
#define REDIS_OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define REDIS_DEFAULTS ((const char *const[]){NULL})

struct redis_server {
    pid_t pid; /* 0: not running */
    uint16_t port;
    uint16_t bus_port;
    const char *password; /* for redis_server_ask(); NULL: no login */
    char folder[REDIS_SERVER_PATH_MAX];
    const char *options[REDIS_SERVER_OPTIONS_MAX + 1];
    bool sentinel; /* it is one; its configuration is in its folder */
};

/* Starts on a free port and waits until it answers. The options' texts must last. */
void redis_server_start(struct redis_server *server, const char *const *options);

/* Starts a sentinel that watches the master at this port under this name, and waits until it answers. It calls a master
 * down after half a second, if `quorum` sentinels agree. */
void redis_server_start_sentinel(struct redis_server *server, const char *name,
                                 uint16_t master_port, unsigned quorum);

/* Starts it again, on its port and in its folder. */
void redis_server_restart(struct redis_server *server);

/* Sends SIGKILL and waits for its end. */
void redis_server_kill(struct redis_server *server);
void redis_server_pause(struct redis_server *server);
void redis_server_resume(struct redis_server *server);

/* Kills it and removes its folder. Does nothing when it never started. */
void redis_server_stop(struct redis_server *server);

/* Sends one command (texts, ended by NULL) on a connection of its own. The reply is written as text: a
 * string or an error as it is, a number in digits, an array as its items with a space after each. */
void redis_server_ask(const struct redis_server *server, char reply[REDIS_SERVER_REPLY_MAX], ...)
    __attribute__((sentinel));

/* The same; fails the test when the reply differs. */
void redis_server_expect(const struct redis_server *server, const char *expected, ...)
    __attribute__((sentinel));

/* Starts a cluster and waits until every server reports it as complete. */
void redis_cluster_start(struct redis_server servers[REDIS_CLUSTER_SERVERS]);
void redis_cluster_stop(struct redis_server servers[REDIS_CLUSTER_SERVERS]);

/* The same as set-up and tear-down of a cmocka group, whose state is the cluster's servers. */
int redis_cluster_set_up(void **state);
int redis_cluster_tear_down(void **state);

/* The server's id in the cluster. */
void redis_cluster_id(const struct redis_server *server, char id[REDIS_SERVER_REPLY_MAX]);

/* A number from INFO, CLUSTER INFO and the like; -1 when it is not there. */
long redis_server_number(const char *text, const char *name);

#endif
