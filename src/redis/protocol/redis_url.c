#include "redis/protocol/redis_url.h"

#include <stdio.h>

static bool refuse_url(char *error, const char *why)
{
    snprintf(error, REDIS_URL_ERROR_MAX, "%s", why);
    return false;
}

static bool url_take_scheme(struct slice *text, struct redis_url *out)
{
    static const struct {
        struct slice scheme;
        bool tls;
        bool cluster;
        bool sentinel;
    } schemes[] = {{SLICE("redis://"), false, false, false},
                   {SLICE("rediss://"), true, false, false},
                   {SLICE("redis-cluster://"), false, true, false},
                   {SLICE("rediss-cluster://"), true, true, false},
                   {SLICE("redis-sentinel://"), false, false, true},
                   {SLICE("rediss-sentinel://"), true, false, true}};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (!slice_starts_with(*text, schemes[i].scheme))
            continue;
        out->tls = schemes[i].tls;
        out->cluster = schemes[i].cluster;
        out->sentinel = schemes[i].sentinel;
        *text = slice_after(*text, schemes[i].scheme.len);
        return true;
    }
    return false;
}

static int url_parse_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes into a terminated string; refuses a zero byte. */
static bool url_decode_percent(struct slice text, char out[REDIS_LOGIN_MAX + 1])
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int byte = (uint8_t)text.data[i];
        if (byte == '%') {
            int high = i + 2 < text.len ? url_parse_hex_digit(text.data[i + 1]) : -1;
            int low = i + 2 < text.len ? url_parse_hex_digit(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            byte = high << 4 | low;
            i += 2;
        }
        if (byte == 0 || len == REDIS_LOGIN_MAX)
            return false;
        out[len++] = (char)byte;
    }
    out[len] = '\0';
    return true;
}

/* The login ends at the last '@', because a password that is not encoded may contain others. */
static bool url_take_login(struct slice *text, struct redis_url *out)
{
    const char *at = text->data ? memrchr(text->data, '@', text->len) : NULL;
    if (!at)
        return true;
    struct slice login = {text->data, (size_t)(at - text->data)};
    struct slice user;
    struct slice password = slice_split(login, ':', &user);
    *text = slice_after(*text, login.len + 1);
    return password.data && url_decode_percent(user, out->user) &&
           url_decode_percent(password, out->password);
}

/* What Redis accepts as a name in sentinel.conf. */
static bool is_master_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static bool url_take_master(struct slice *path, struct redis_url *out)
{
    struct slice name;
    if (!out->sentinel)
        return true;
    *path = slice_split(*path, '/', &name);
    if (name.len == 0 || name.len > REDIS_MASTER_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!is_master_name_byte(name.data[i]))
            return false;
    memcpy(out->master, name.data, name.len);
    return true;
}

static bool url_take_database(struct slice digits, struct redis_url *out)
{
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        out->database = out->database * 10 + (unsigned)(digits.data[i] - '0');
        if (out->database > REDIS_DATABASE_MAX)
            return false;
    }
    return !out->cluster || out->database == 0;
}

static bool url_take_seeds(struct slice text, struct redis_url *out)
{
    while (text.data) {
        struct slice item;
        struct address address;
        text = slice_split(text, ',', &item);
        if (out->seed_count == REDIS_SEEDS_MAX || !address_parse(item, &address) ||
            address.port == 0)
            return false;
        redis_address_set(&out->seeds[out->seed_count++], address.host, address.port);
    }
    return out->seed_count > 0 && (out->cluster || out->sentinel || out->seed_count == 1);
}

static const char *url_expected_seeds(const struct redis_url *url)
{
    if (url->cluster)
        return "expected HOST:PORT, or several separated by commas, such as "
               "redis-cluster://10.0.0.1:6379,10.0.0.2:6379";
    if (url->sentinel)
        return "expected HOST:PORT of the sentinels, separated by commas, such as "
               "redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster";
    return "expected one HOST:PORT with its port, such as redis://127.0.0.1:6379";
}

bool redis_url_parse(struct slice text, struct redis_url *out, char error[REDIS_URL_ERROR_MAX])
{
    struct slice hosts;
    *out = (struct redis_url){0};
    if (!url_take_scheme(&text, out))
        return refuse_url(error, "expected redis://, redis-cluster:// or redis-sentinel://, each "
                                 "with rediss for TLS");
    if (!url_take_login(&text, out))
        return refuse_url(error,
                          "expected USER:PASSWORD or :PASSWORD before the @, percent-encoded, "
                          "each of at most 255 bytes");
    struct slice path = slice_split(text, '/', &hosts);
    if (!url_take_master(&path, out))
        return refuse_url(error, "expected the name of the master after the sentinels, such as "
                                 "redis-sentinel://10.0.0.1:26379/mymaster");
    if (!url_take_database(path, out))
        return refuse_url(error, out->cluster ? "a cluster has only database 0"
                                              : "expected a database number after the /");
    if (!url_take_seeds(hosts, out))
        return refuse_url(error, url_expected_seeds(out));
    return true;
}

bool redis_address_set(struct redis_address *address, struct slice host, uint16_t port)
{
    if (host.len > ADDRESS_HOST_MAX || (host.len && memchr(host.data, '\0', host.len)))
        return false;
    *address = (struct redis_address){.port = port};
    if (host.len)
        memcpy(address->host, host.data, host.len);
    return true;
}

bool redis_address_equal(const struct redis_address *a, const struct redis_address *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}
