/*
 * The URL of Redis, with the login, as an operator writes it:
 *
 *     redis://[[USER]:PASSWORD@]HOST:PORT[/DATABASE]
 *     redis-cluster://[[USER]:PASSWORD@]HOST:PORT[,HOST:PORT]…
 *     redis-sentinel://[[USER]:PASSWORD@]HOST:PORT[,HOST:PORT]…/MASTER[/DATABASE]
 *
 * with `rediss` for `redis` in each to use TLS. The hosts of a cluster are its seeds: servers that list the
 * others. With Sentinel they are the sentinels, and the login is that of the master. User and password may be percent-encoded. The result holds copies and a secret: never log it, and
 * wipe it when done.
 */
#ifndef ROLLCALL_REDIS_PROTOCOL_REDIS_URL_H
#define ROLLCALL_REDIS_PROTOCOL_REDIS_URL_H

#include "base/slice.h"
#include "config/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REDIS_SEEDS_MAX = 16,
    REDIS_LOGIN_MAX = 255,
    REDIS_DATABASE_MAX = 65535,
    REDIS_MASTER_NAME_MAX = 64,
    REDIS_URL_ERROR_MAX = 160,
};

struct redis_address {
    char host[ADDRESS_HOST_MAX + 1];
    uint16_t port;
};

struct redis_url {
    bool tls;
    bool cluster;
    bool sentinel; /* the seeds are sentinels, which know the only server */
    char master[REDIS_MASTER_NAME_MAX + 1]; /* its name there; empty without Sentinel */
    char user[REDIS_LOGIN_MAX + 1];         /* empty: the default user */
    char password[REDIS_LOGIN_MAX + 1];     /* empty: none */
    unsigned database;
    struct redis_address seeds[REDIS_SEEDS_MAX];
    size_t seed_count;
};

/* Returns false with a sentence in `error` that repeats no part of the login. */
bool redis_url_parse(struct slice text, struct redis_url *out, char error[REDIS_URL_ERROR_MAX]);

/* Returns false when the host is longer than any host name. */
bool redis_address_set(struct redis_address *address, struct slice host, uint16_t port);
bool redis_address_equal(const struct redis_address *a, const struct redis_address *b);

#endif
