#include "protocol/proxy_header.h"

#include <string.h>

enum {
    V2_FIXED_BYTES = 16,
    V2_COMMAND_AT = 12,
    V2_FAMILY_AT = 13,
    V2_LENGTH_AT = 14,
    V2_LOCAL = 0x20,
    V2_PROXY = 0x21,
    V2_UNSPECIFIED = 0x00,
    V2_TCP4 = 0x11,
    V2_TCP6 = 0x21,
    V2_UNIX_STREAM = 0x31,
    V2_TCP4_BYTES = 12,
    V2_TCP6_BYTES = 36,
    V2_UNIX_BYTES = 216,
    PORT_MAX = 65535,
};

static const struct slice V1_SIGNATURE = {"PROXY ", 6};
static const struct slice V2_SIGNATURE = {"\r\n\r\n\0\r\nQUIT\n", 12};

/* ---- version 1: one line of text ---- */

static bool is_proxy_port(struct slice text)
{
    unsigned port = 0;
    if (text.len == 0 || text.len > 5 || (text.len > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.data[i] - '0');
    }
    return port <= PORT_MAX;
}

/* Parses an address of the family that the line names: only IPv6 addresses have colons. */
static bool parse_proxy_address(struct slice text, bool v6, struct ip_address *out)
{
    bool has_colon = text.len && memchr(text.data, ':', text.len);
    return has_colon == v6 && ip_address_parse(text, out);
}

/* `line` is what follows the signature, without the end of the line. */
static enum proxy_result parse_proxy_line(struct slice line, struct proxy_header *out)
{
    struct slice family, from, to, from_port;
    struct ip_address target;
    line = slice_split(line, ' ', &family);
    if (slice_is(family, "UNKNOWN"))
        return PROXY_COMPLETE;
    bool v6 = slice_is(family, "TCP6");
    if (!v6 && !slice_is(family, "TCP4"))
        return PROXY_MALFORMED;
    line = slice_split(line, ' ', &from);
    line = slice_split(line, ' ', &to);
    line = slice_split(line, ' ', &from_port);
    out->names_client = parse_proxy_address(from, v6, &out->from);
    return out->names_client && parse_proxy_address(to, v6, &target) && is_proxy_port(from_port) &&
                   is_proxy_port(line)
               ? PROXY_COMPLETE
               : PROXY_MALFORMED;
}

static enum proxy_result parse_proxy_v1(struct slice bytes, struct proxy_header *out)
{
    const char *end = memchr(bytes.data, '\r', bytes.len);
    size_t before = end ? (size_t)(end - bytes.data) : bytes.len;
    if (before + 2 > PROXY_V1_BYTES_MAX || memchr(bytes.data, '\n', before) ||
        memchr(bytes.data, '\0', before))
        return PROXY_MALFORMED;
    if (bytes.len < before + 2)
        return PROXY_INCOMPLETE;
    out->len = before + 2;
    return bytes.data[before + 1] == '\n'
               ? parse_proxy_line(slice_after(slice_first(bytes, before), V1_SIGNATURE.len), out)
               : PROXY_MALFORMED;
}

/* ---- version 2: binary ---- */

static enum proxy_result parse_proxy_v2(struct slice bytes, struct proxy_header *out)
{
    const uint8_t *data = (const uint8_t *)bytes.data;
    if (bytes.len < V2_FIXED_BYTES)
        return PROXY_INCOMPLETE;
    size_t len = (size_t)(data[V2_LENGTH_AT] << 8 | data[V2_LENGTH_AT + 1]);
    uint8_t command = data[V2_COMMAND_AT], family = data[V2_FAMILY_AT];
    bool is_known = family == V2_UNSPECIFIED || (family == V2_TCP4 && len >= V2_TCP4_BYTES) ||
                    (family == V2_TCP6 && len >= V2_TCP6_BYTES) ||
                    (family == V2_UNIX_STREAM && len >= V2_UNIX_BYTES);
    if ((command != V2_LOCAL && command != V2_PROXY) || (command == V2_PROXY && !is_known) ||
        V2_FIXED_BYTES + len > PROXY_HEADER_BYTES_MAX)
        return PROXY_MALFORMED;
    if (bytes.len < V2_FIXED_BYTES + len)
        return PROXY_INCOMPLETE;
    out->len = V2_FIXED_BYTES + len;
    out->names_client = command == V2_PROXY && (family == V2_TCP4 || family == V2_TCP6);
    if (out->names_client && family == V2_TCP4)
        out->from = ip_address_from_v4(data + V2_FIXED_BYTES);
    else if (out->names_client)
        memcpy(out->from.bytes, data + V2_FIXED_BYTES, IP_ADDRESS_BYTES);
    return PROXY_COMPLETE;
}

/* ---- both ---- */

/* Whether the bytes start with the signature, or are the start of it. */
static bool may_be_proxy_header(struct slice bytes, struct slice signature)
{
    size_t len = bytes.len < signature.len ? bytes.len : signature.len;
    return len == 0 || memcmp(bytes.data, signature.data, len) == 0;
}

enum proxy_result proxy_header_parse(struct slice bytes, struct proxy_header *out)
{
    struct proxy_header header = {0};
    enum proxy_result result = PROXY_ABSENT;
    if (may_be_proxy_header(bytes, V1_SIGNATURE))
        result = bytes.len < V1_SIGNATURE.len ? PROXY_INCOMPLETE : parse_proxy_v1(bytes, &header);
    else if (may_be_proxy_header(bytes, V2_SIGNATURE))
        result = bytes.len < V2_SIGNATURE.len ? PROXY_INCOMPLETE : parse_proxy_v2(bytes, &header);
    if (result == PROXY_COMPLETE)
        *out = header;
    return result;
}
