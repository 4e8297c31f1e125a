/*
 * The header of the PROXY protocol, versions 1 and 2: a proxy sends it before a client's first byte, and before TLS, to
 * name the client's address.
 *
 * Without I/O and without state: the caller passes all bytes received so far. Strict: a header that deviates from the
 * specification is malformed, since both sides must agree where it ends.
 */
#ifndef ROLLCALL_PROTOCOL_PROXY_HEADER_H
#define ROLLCALL_PROTOCOL_PROXY_HEADER_H

#include "base/ip_address.h"

#include <stdbool.h>
#include <stddef.h>

/* The longest header: of version 1 by its specification; of version 2 by our choice, which leaves space for extensions. */
enum { PROXY_V1_BYTES_MAX = 107, PROXY_HEADER_BYTES_MAX = 2048 };

enum proxy_result {
    PROXY_ABSENT, /* the bytes are something else */
    PROXY_INCOMPLETE,
    PROXY_COMPLETE,
    PROXY_MALFORMED,
};

struct proxy_header {
    size_t len;             /* bytes of the header; the client's follow */
    bool names_client;      /* false: the proxy speaks for itself, or does not know */
    struct ip_address from; /* the client's address */
};

/* Writes *out for PROXY_COMPLETE only. No bytes are INCOMPLETE. */
enum proxy_result proxy_header_parse(struct slice bytes, struct proxy_header *out);

#endif
