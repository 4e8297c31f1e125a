#include "base/ip_address.h"

#include <arpa/inet.h>
#include <string.h>

enum { V4_PREFIX_BYTES = 12, V4_PREFIX_BITS = 96, CLIENT_V6_BYTES = 8, BITS_MAX = 128 };

static const uint8_t V4_PREFIX[V4_PREFIX_BYTES] = {[10] = 0xff, [11] = 0xff};

static bool ip_address_is_v4(const struct ip_address *address)
{
    return memcmp(address->bytes, V4_PREFIX, V4_PREFIX_BYTES) == 0;
}

struct ip_address ip_address_from_v4(const uint8_t bytes[4])
{
    struct ip_address address;
    memcpy(address.bytes, V4_PREFIX, V4_PREFIX_BYTES);
    memcpy(address.bytes + V4_PREFIX_BYTES, bytes, 4);
    return address;
}

bool ip_address_parse(struct slice text, struct ip_address *out)
{
    char copy[IP_ADDRESS_TEXT_MAX];
    uint8_t v4[4];
    if (text.len == 0 || text.len >= sizeof(copy) || memchr(text.data, '\0', text.len))
        return false;
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, v4) == 1) {
        *out = ip_address_from_v4(v4);
        return true;
    }
    return inet_pton(AF_INET6, copy, out->bytes) == 1;
}

bool ip_address_parse_forwarded(struct slice text, struct ip_address *out)
{
    if (text.len && text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.len);
        return end &&
               ip_address_parse((struct slice){text.data + 1, (size_t)(end - text.data) - 1}, out);
    }
    struct slice host;
    slice_split(text, ':', &host);
    struct slice rest = slice_after(text, host.len);
    bool has_port = rest.len > 0 && memchr(rest.data + 1, ':', rest.len - 1) == NULL;
    return ip_address_parse(has_port ? host : text, out);
}

const char *ip_address_write(char out[IP_ADDRESS_TEXT_MAX], const struct ip_address *address)
{
    const char *text =
        ip_address_is_v4(address)
            ? inet_ntop(AF_INET, address->bytes + V4_PREFIX_BYTES, out, IP_ADDRESS_TEXT_MAX)
            : inet_ntop(AF_INET6, address->bytes, out, IP_ADDRESS_TEXT_MAX);
    if (!text)
        out[0] = '\0';
    return out;
}

bool ip_address_of_socket(const struct sockaddr_storage *from, struct ip_address *out)
{
    if (from->ss_family == AF_INET) {
        uint8_t bytes[4];
        memcpy(bytes, &((const struct sockaddr_in *)from)->sin_addr, sizeof(bytes));
        *out = ip_address_from_v4(bytes);
        return true;
    }
    if (from->ss_family != AF_INET6)
        return false;
    memcpy(out->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, IP_ADDRESS_BYTES);
    return true;
}

struct ip_address ip_address_of_client(const struct ip_address *address)
{
    struct ip_address client = *address;
    if (!ip_address_is_v4(address))
        memset(client.bytes + CLIENT_V6_BYTES, 0, IP_ADDRESS_BYTES - CLIENT_V6_BYTES);
    return client;
}

static bool ip_network_parse_prefix(struct slice text, unsigned max, unsigned *out)
{
    unsigned value = 0;
    if (text.len == 0 || text.len > 3 || (text.len > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    *out = value;
    return value <= max;
}

/* Whether all bits from `from` on are the same in both. */
static bool ip_address_bits_equal(const struct ip_address *a, const struct ip_address *b,
                                  unsigned from, unsigned to)
{
    for (unsigned bit = from; bit < to; bit++) {
        uint8_t mask = (uint8_t)(0x80U >> (bit % 8));
        if ((a->bytes[bit / 8] ^ b->bytes[bit / 8]) & mask)
            return false;
    }
    return true;
}

bool ip_network_parse(struct slice text, struct ip_network *out)
{
    static const struct ip_address zero;
    struct slice host, prefix = slice_split(text, '/', &host);
    if (!ip_address_parse(host, &out->address))
        return false;
    unsigned first = ip_address_is_v4(&out->address) ? V4_PREFIX_BITS : 0;
    unsigned bits = BITS_MAX - first;
    if (prefix.data && !ip_network_parse_prefix(prefix, BITS_MAX - first, &bits))
        return false;
    out->prefix_bits = (uint8_t)(first + bits);
    return ip_address_bits_equal(&out->address, &zero, out->prefix_bits, BITS_MAX);
}

bool ip_network_contains(const struct ip_network *network, const struct ip_address *address)
{
    return ip_address_bits_equal(&network->address, address, 0, network->prefix_bits);
}
