#include "config/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

static bool parse_address_port(struct slice text, uint16_t *port)
{
    unsigned value = 0;
    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    *port = (uint16_t)value;
    return value <= UINT16_MAX;
}

static bool is_address_host(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.data[i];
        bool alphanumeric =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alphanumeric && c != '.' && c != '-' && c != '_')
            return false;
    }
    return host.len > 0 && host.len <= ADDRESS_HOST_MAX;
}

/* Terminates the host, as inet_pton() needs it, and converts it. */
static bool address_host_to_binary(int family, struct slice host, void *out)
{
    char text[INET6_ADDRSTRLEN];
    if (host.len >= sizeof(text))
        return false;
    memcpy(text, host.data, host.len);
    text[host.len] = '\0';
    return inet_pton(family, text, out) == 1;
}

bool address_parse(struct slice text, struct address *out)
{
    *out = (struct address){0};
    if (slice_starts_with(text, SLICE("["))) {
        struct in6_addr unused;
        struct slice rest = slice_split(slice_after(text, 1), ']', &out->host);
        out->is_ipv6 = true;
        return rest.len > 1 && rest.data[0] == ':' && out->host.len > 0 &&
               address_host_to_binary(AF_INET6, out->host, &unused) &&
               parse_address_port(slice_after(rest, 1), &out->port);
    }
    struct slice port = slice_split(text, ':', &out->host);
    return is_address_host(out->host) && parse_address_port(port, &out->port);
}

bool address_is_loopback(const struct address *address)
{
    struct in6_addr v6;
    struct in_addr v4;
    if (address->is_ipv6)
        return address_host_to_binary(AF_INET6, address->host, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
    if (address_host_to_binary(AF_INET, address->host, &v4))
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    return address->host.len == strlen("localhost") &&
           strncasecmp(address->host.data, "localhost", address->host.len) == 0;
}

bool address_names_loopback(struct slice text)
{
    char with_port[ADDRESS_HOST_MAX + 8];
    struct address address;
    if (address_parse(text, &address))
        return address_is_loopback(&address);
    int len = snprintf(with_port, sizeof(with_port), "%.*s:0", SLICE_FORMAT(text));
    return len < (int)sizeof(with_port) &&
           address_parse((struct slice){with_port, (size_t)len}, &address) &&
           address_is_loopback(&address);
}

bool address_is_any(const struct address *address)
{
    struct in6_addr v6;
    struct in_addr v4;
    if (address->is_ipv6)
        return address_host_to_binary(AF_INET6, address->host, &v6) && IN6_IS_ADDR_UNSPECIFIED(&v6);
    return address_host_to_binary(AF_INET, address->host, &v4) && v4.s_addr == htonl(INADDR_ANY);
}
