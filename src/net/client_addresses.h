/*
 * The addresses of a process's clients: how many connections each has, and which descriptors are theirs.
 *
 *   accepted ──► client_addresses_assign(): the peer's address, or the one that a trusted proxy names
 *   closed   ──► client_addresses_release()
 *
 * Connections are found by their descriptor, so that a connection itself needs no memory for its address. IPv6
 * addresses count by their first 64 bits (ip_address_of_client()). At most one entry for each connection exists.
 *
 * Shared by all workers of a process; a mutex protects it. It exists only where a limit or a trusted proxy is
 * configured, so that other installations pay nothing.
 */
#ifndef ROLLCALL_NET_CLIENT_ADDRESSES_H
#define ROLLCALL_NET_CLIENT_ADDRESSES_H

#include "base/ip_address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client_addresses;

/* `connections_max` of an address; 0: any number. Copies the networks. Returns NULL when out of memory. */
struct client_addresses *client_addresses_make(uint32_t connections_max,
                                               const struct ip_network *trusted,
                                               size_t trusted_count, uint64_t hash_seed);
void client_addresses_free(struct client_addresses **addresses);

/* Whether the address is that of a trusted proxy. */
bool client_addresses_is_trusted(const struct client_addresses *addresses,
                                 const struct ip_address *address);

/* Of the addresses in X-Forwarded-For, which proxies append to, the last one that is not trusted; the first one if all
 * are. Returns false when there is none, or what stands in that place is no address. */
bool client_addresses_forwarded(const struct client_addresses *addresses, struct slice header,
                                struct ip_address *out);

/* Counts the connection with this descriptor for an address, and no longer for the one it had. Returns false, and counts
 * it for none, when the address has too many or memory is short. */
bool client_addresses_assign(struct client_addresses *addresses, int fd,
                             const struct ip_address *address);

/* The descriptor is about to be closed. Does nothing when it has no address. */
void client_addresses_release(struct client_addresses *addresses, int fd);

/* Returns how many addresses have connections. */
size_t client_addresses_count(struct client_addresses *addresses);

#endif
