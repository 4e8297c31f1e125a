#include "config/setting_rule.h"

#include "config/address.h"

/* Node ids are part of Redis keys and channel names. */
enum { NODE_ID_MAX = 64 };

static bool is_address(struct slice text)
{
    struct address unused;
    return address_parse(text, &unused);
}

static bool is_empty_or_address(struct slice text)
{
    return text.len == 0 || is_address(text);
}

static bool is_empty_or_node_id(struct slice text)
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
static bool is_origin(struct slice text)
{
    struct slice scheme;
    struct slice rest = slice_split(text, ':', &scheme);
    struct slice host = slice_after(rest, 2);
    return scheme.len > 0 && slice_starts_with(rest, SLICE("//")) && host.len > 0 &&
           !memchr(host.data, '/', host.len);
}

/* The backend checks the rest of the URL. */
static bool has_url_scheme(struct slice text, const char *scheme)
{
    struct slice prefix = slice_of(scheme);
    return slice_starts_with(text, prefix) && text.len > prefix.len;
}

static bool is_state_url(struct slice text)
{
    return slice_is(text, "memory") || has_url_scheme(text, "redis://") ||
           has_url_scheme(text, "redis-cluster://") || has_url_scheme(text, "rediss://") ||
           has_url_scheme(text, "rediss-cluster://");
}

static bool is_ledger_url(struct slice text)
{
    return text.len == 0 || has_url_scheme(text, "sqlite:") || has_url_scheme(text, "remote://") ||
           has_url_scheme(text, "dynamodb://");
}

static bool is_feed_url(struct slice text)
{
    return slice_is(text, "local") || has_url_scheme(text, "kafka://");
}

static bool is_not_empty_text(struct slice text)
{
    return text.len > 0;
}

const struct setting_rule setting_rule_address = {is_address, "HOST:PORT or [IPV6]:PORT"};
const struct setting_rule setting_rule_optional_address = {is_empty_or_address,
                                                           "HOST:PORT or [IPV6]:PORT, or nothing"};
const struct setting_rule setting_rule_node_id = {
    is_empty_or_node_id, "at most 64 letters, digits, dots, dashes and underscores"};
const struct setting_rule setting_rule_origin = {is_origin, "SCHEME://HOST[:PORT] without a path"};
const struct setting_rule setting_rule_state_url = {
    is_state_url, "memory, redis://HOST:PORT[/DB] or redis-cluster://HOST:PORT,HOST:PORT"};
const struct setting_rule setting_rule_ledger_url = {
    is_ledger_url, "sqlite:PATH, remote://HOST:PORT or dynamodb://REGION[?endpoint=URL]"};
const struct setting_rule setting_rule_feed_url = {is_feed_url, "local or kafka://HOST:PORT,…"};
const struct setting_rule setting_rule_not_empty = {is_not_empty_text, "text that is not empty"};
