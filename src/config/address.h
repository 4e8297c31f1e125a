/*
 * A network address as an operator writes it: HOST:PORT, or [V6]:PORT. Parsing does not resolve
 * names; the listener or connector does. Pure functions, safe from any thread.
 */
#ifndef ROLLCALL_CONFIG_ADDRESS_H
#define ROLLCALL_CONFIG_ADDRESS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

enum { ADDRESS_HOST_MAX = 253 };

struct address {
    struct slice host; /* without brackets; points into the parsed text */
    uint16_t port;     /* 0: any free port, for a listener */
    bool is_ipv6;      /* it was written in brackets */
};

/* Returns false for anything but one host of at most ADDRESS_HOST_MAX bytes and one port. */
bool address_parse(struct slice text, struct address *out);

/* Returns whether the host is "localhost", in 127.0.0.0/8, or ::1. Other names do not count,
 * whatever they resolve to. */
bool address_is_loopback(const struct address *address);

/* Does the same for HOST or HOST:PORT, as a Host header or an origin has it. */
bool address_names_loopback(struct slice text);

/* Returns whether it is 0.0.0.0 or ::, all addresses of the machine: fine to listen on, not to
 * connect to. */
bool address_is_any(const struct address *address);

#endif
