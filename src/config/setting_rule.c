#include "config/setting_rule.h"

#include "base/ip_address.h"

#include "config/address.h"

#include <stdio.h>

/* Node ids are part of Redis keys and channel names. */
enum { NODE_ID_MAX = 64 };

static bool is_address_setting(struct slice text)
{
    struct address unused;
    return address_parse(text, &unused);
}

static bool is_empty_or_address_setting(struct slice text)
{
    return text.len == 0 || is_address_setting(text);
}

static bool is_empty_or_node_id_setting(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool alphanumeric =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alphanumeric && c != '.' && c != '-' && c != '_')
            return false;
    }
    return text.len <= NODE_ID_MAX;
}

/* A browser sends neither a path nor a trailing slash, so an entry with one would never match. */
static bool is_origin_setting(struct slice text)
{
    struct slice scheme;
    struct slice rest = slice_split(text, ':', &scheme);
    struct slice host = slice_after(rest, 2);
    return scheme.len > 0 && slice_starts_with(rest, SLICE("//")) && host.len > 0 &&
           !memchr(host.data, '/', host.len);
}

/* The backend checks the rest of the URL. */
static bool setting_has_url_scheme(struct slice text, const char *scheme)
{
    struct slice prefix = slice_of(scheme);
    return slice_starts_with(text, prefix) && text.len > prefix.len;
}

static bool is_state_url_setting(struct slice text)
{
    return slice_is(text, "memory") || setting_has_url_scheme(text, "redis://") ||
           setting_has_url_scheme(text, "redis-cluster://") ||
           setting_has_url_scheme(text, "redis-sentinel://") ||
           setting_has_url_scheme(text, "rediss://") ||
           setting_has_url_scheme(text, "rediss-cluster://") ||
           setting_has_url_scheme(text, "rediss-sentinel://");
}

static bool is_ledger_url_setting(struct slice text)
{
    return text.len == 0 || setting_has_url_scheme(text, "sqlite:") ||
           setting_has_url_scheme(text, "remote://") || setting_has_url_scheme(text, "dynamodb://");
}

static bool is_feed_url_setting(struct slice text)
{
    return slice_is(text, "local") || setting_has_url_scheme(text, "kafka://") ||
           setting_has_url_scheme(text, "kafka+ssl://");
}

static bool is_network_setting(struct slice text)
{
    struct ip_network network;
    return ip_network_parse(text, &network);
}

enum { AUTHORITY_BYTES_MAX = ADDRESS_HOST_MAX + sizeof("[]:65535") };

/* Reads HOST or HOST:PORT. `text` keeps what *out points into. */
static bool parse_authority_setting(struct slice authority, const char *default_port,
                                    char text[AUTHORITY_BYTES_MAX], struct address *out)
{
    bool has_port = authority.len > 0 && authority.data[authority.len - 1] != ']' &&
                    memrchr(authority.data, ':', authority.len) != NULL;
    int len = snprintf(text, AUTHORITY_BYTES_MAX, "%.*s%s", SLICE_FORMAT(authority),
                       has_port ? "" : default_port);
    return len > 0 && len < AUTHORITY_BYTES_MAX &&
           address_parse((struct slice){text, (size_t)len}, out);
}

/* Whoever can change an answer on the way can sign tokens, so plain HTTP must not leave the machine. */
static bool is_jwks_url_setting(struct slice text)
{
    struct slice rest, host, plain = SLICE("http://");
    struct address address;
    char authority[AUTHORITY_BYTES_MAX];
    if (text.len == 0 || (setting_has_url_scheme(text, "https://") && text.data[8] != '/'))
        return true;
    if (!slice_starts_with(text, plain))
        return false;
    rest = slice_after(text, plain.len);
    slice_split(rest, '/', &host);
    return parse_authority_setting(host, ":80", authority, &address) &&
           address_is_loopback(&address);
}

/* Reads http(s)://HOST[:PORT][/PATH][?QUERY]. */
static bool is_http_url_setting(struct slice text)
{
    struct slice rest, host;
    struct address address;
    char authority[AUTHORITY_BYTES_MAX];
    bool is_plain = slice_starts_with(text, SLICE("http://"));
    if (!is_plain && !slice_starts_with(text, SLICE("https://")))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] <= ' ' || strchr("\"\\<>", text.data[i]))
            return false;
    rest = slice_after(text, is_plain ? 7 : 8);
    slice_split(rest, '/', &host);
    slice_split(host, '?', &host);
    return parse_authority_setting(host, is_plain ? ":80" : ":443", authority, &address);
}

static bool is_optional_http_url_setting(struct slice text)
{
    return text.len == 0 || is_http_url_setting(text);
}

/* What follows the URL is read when the endpoints are made (webhooks/webhook_endpoints.h). */
static bool is_webhook_endpoint_setting(struct slice text)
{
    struct slice url;
    slice_split(text, ' ', &url);
    return is_http_url_setting(url);
}

/* A browser refuses the whole list if one URL is not as RFC 7064 and RFC 7065 say. */
static bool is_ice_host(struct slice text)
{
    struct address address;
    char authority[AUTHORITY_BYTES_MAX];
    for (size_t i = 0; i < text.len; i++)
        if (strchr("/@?# \"\\", text.data[i]))
            return false;
    return parse_authority_setting(text, ":3478", authority, &address) && address.port > 0;
}

static bool is_turn_url_setting(struct slice text)
{
    struct slice scheme, host;
    struct slice rest = slice_split(text, ':', &scheme);
    struct slice query = slice_split(rest, '?', &host);
    bool has_transport = slice_is(query, "transport=udp") || slice_is(query, "transport=tcp");
    return (slice_is(scheme, "turn") || slice_is(scheme, "turns")) && is_ice_host(host) &&
           (has_transport || host.len == rest.len);
}

static bool is_ice_url_setting(struct slice text)
{
    struct slice scheme;
    struct slice host = slice_split(text, ':', &scheme);
    bool is_stun = slice_is(scheme, "stun") || slice_is(scheme, "stuns");
    return is_stun ? is_ice_host(host) : is_turn_url_setting(text);
}

static bool is_not_empty_setting(struct slice text)
{
    return text.len > 0;
}

const struct setting_rule setting_rule_address = {is_address_setting, "HOST:PORT or [IPV6]:PORT"};
const struct setting_rule setting_rule_optional_address = {is_empty_or_address_setting,
                                                           "HOST:PORT or [IPV6]:PORT, or nothing"};
const struct setting_rule setting_rule_node_id = {
    is_empty_or_node_id_setting, "at most 64 letters, digits, dots, dashes and underscores"};
const struct setting_rule setting_rule_network = {
    is_network_setting, "an IP address, or a network such as 10.0.0.0/8 or 2001:db8::/32"};
const struct setting_rule setting_rule_origin = {is_origin_setting,
                                                 "SCHEME://HOST[:PORT] without a path"};
const struct setting_rule setting_rule_state_url = {
    is_state_url_setting, "memory, redis://HOST:PORT[/DB], redis-cluster://HOST:PORT,HOST:PORT or "
                          "redis-sentinel://HOST:PORT,HOST:PORT/MASTER[/DB]"};
const struct setting_rule setting_rule_ledger_url = {
    is_ledger_url_setting,
    "sqlite:PATH, remote://HOST:PORT or dynamodb://REGION[?endpoint=URL&prefix=NAME&ca=FILE]"};
const struct setting_rule setting_rule_feed_url = {
    is_feed_url_setting, "local, or kafka://HOST:PORT,… or kafka+ssl://HOST:PORT,…"};
const struct setting_rule setting_rule_jwks_url = {
    is_jwks_url_setting, "https://HOST[:PORT]/PATH, http:// with a loopback host, or nothing"};
const struct setting_rule setting_rule_optional_http_url = {
    is_optional_http_url_setting, "http://HOST[:PORT]/PATH, https://HOST[:PORT]/PATH, or nothing"};
const struct setting_rule setting_rule_webhook_endpoint = {
    is_webhook_endpoint_setting, "http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH"};
const struct setting_rule setting_rule_ice_url = {
    is_ice_url_setting,
    "stun:HOST[:PORT], stuns:…, or turn:HOST[:PORT][?transport=udp|tcp], turns:…"};
const struct setting_rule setting_rule_turn_url = {
    is_turn_url_setting, "turn:HOST[:PORT][?transport=udp|tcp], or turns:…"};
const struct setting_rule setting_rule_not_empty = {is_not_empty_setting, "text that is not empty"};
