/*
 * IP addresses and networks as values. An IPv4 address is kept in its IPv6 form (::ffff:a.b.c.d), so that there is one
 * kind of address, and a client is the same whether it came by an IPv4 or a dual-stack socket.
 */
#ifndef ROLLCALL_BASE_IP_ADDRESS_H
#define ROLLCALL_BASE_IP_ADDRESS_H

#include "base/slice.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum { IP_ADDRESS_BYTES = 16, IP_ADDRESS_TEXT_MAX = INET6_ADDRSTRLEN };

struct ip_address {
    uint8_t bytes[IP_ADDRESS_BYTES];
};

struct ip_network {
    struct ip_address address;
    uint8_t prefix_bits; /* of the IPv6 form: an IPv4 network has 96 more than it is written with */
};

/* Parses "192.0.2.1" or "2001:db8::1", without brackets or port. */
bool ip_address_parse(struct slice text, struct ip_address *out);

/* Parses an address as it stands in X-Forwarded-For: perhaps in brackets, perhaps with a port. */
bool ip_address_parse_forwarded(struct slice text, struct ip_address *out);

/* Writes the address as text; an IPv4 address in its own form. Returns `out`. */
const char *ip_address_write(char out[IP_ADDRESS_TEXT_MAX], const struct ip_address *address);

/* Returns false when the socket's address is not an IP address. */
bool ip_address_of_socket(const struct sockaddr_storage *from, struct ip_address *out);

struct ip_address ip_address_from_v4(const uint8_t bytes[4]);

static inline bool ip_address_equal(const struct ip_address *a, const struct ip_address *b)
{
    return memcmp(a->bytes, b->bytes, IP_ADDRESS_BYTES) == 0;
}

/* Returns the address that stands for a client in limits: an IPv4 address itself, of an IPv6 address the first 64 bits,
 * since one client usually has all of the rest. */
struct ip_address ip_address_of_client(const struct ip_address *address);

/* Parses "10.0.0.0/8", "2001:db8::/32" or a single address. Bits after the prefix must be 0. */
bool ip_network_parse(struct slice text, struct ip_network *out);
bool ip_network_contains(const struct ip_network *network, const struct ip_address *address);

#endif
