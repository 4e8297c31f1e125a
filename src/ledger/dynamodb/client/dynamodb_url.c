#include "ledger/dynamodb/client/dynamodb_url.h"

#include "base/slice.h"

#include <stdio.h>

static const struct slice SCHEME = SLICE("dynamodb://");

static bool fail_url(char error[DYNAMODB_URL_ERROR_MAX], const char *why, struct slice what)
{
    snprintf(error, DYNAMODB_URL_ERROR_MAX,
             "%s: %.*s; expected dynamodb://REGION[?endpoint=URL&prefix=NAME&ca=FILE]", why,
             SLICE_FORMAT(what));
    return false;
}

/* Letters, digits and the punctuation that both regions and table names may have. */
static bool is_dynamodb_name(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

static bool copy_part(struct slice text, char *out, size_t out_bytes)
{
    if (text.len >= out_bytes)
        return false;
    memcpy(out, text.data, text.len);
    out[text.len] = '\0';
    return true;
}

static bool is_http_url(struct slice text)
{
    return slice_starts_with(text, SLICE("https://")) || slice_starts_with(text, SLICE("http://"));
}

static bool parse_parameter(struct slice parameter, struct dynamodb_url *url,
                            char error[DYNAMODB_URL_ERROR_MAX])
{
    struct slice name, value = slice_split(parameter, '=', &name);
    if (slice_is(name, "endpoint"))
        return is_http_url(value) && copy_part(value, url->endpoint, sizeof(url->endpoint))
                   ? true
                   : fail_url(error, "the endpoint is no HTTP URL", value);
    if (slice_is(name, "prefix"))
        return is_dynamodb_name(value) && copy_part(value, url->prefix, sizeof(url->prefix))
                   ? true
                   : fail_url(error, "a table cannot have this prefix", value);
    if (slice_is(name, "ca"))
        return value.len && copy_part(value, url->ca_file, sizeof(url->ca_file))
                   ? true
                   : fail_url(error, "no file of certificates", value);
    return fail_url(error, "unknown parameter", name);
}

static void set_default_endpoint(struct dynamodb_url *url)
{
    const char *domain = slice_starts_with(slice_of(url->region), SLICE("cn-")) ? "amazonaws.com.cn"
                                                                                : "amazonaws.com";
    if (!url->endpoint[0])
        snprintf(url->endpoint, sizeof(url->endpoint), "https://dynamodb.%s.%s/", url->region,
                 domain);
}

bool dynamodb_url_parse(const char *text, struct dynamodb_url *url,
                        char error[DYNAMODB_URL_ERROR_MAX])
{
    struct slice all = slice_of(text), region, parameters, parameter;
    *url = (struct dynamodb_url){.prefix = DYNAMODB_PREFIX_DEFAULT};
    if (!slice_starts_with(all, SCHEME))
        return fail_url(error, "no such scheme", all);
    parameters = slice_split(slice_after(all, SCHEME.len), '?', &region);
    if (region.len == 0 || !is_dynamodb_name(region) ||
        !copy_part(region, url->region, sizeof(url->region)))
        return fail_url(error, "no region", region);
    while (parameters.len > 0) {
        parameters = slice_split(parameters, '&', &parameter);
        if (!parse_parameter(parameter, url, error))
            return false;
    }
    set_default_endpoint(url);
    return true;
}
