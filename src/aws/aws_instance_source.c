/* The metadata service of an instance, version 2: a token first, then the role's name, then its keys. Version 1, which
 * any process that can be made to fetch a URL could use, is not asked. */
#include "aws/aws_fetch.h"

#include <stdio.h>

#define INSTANCE_ENDPOINT "http://169.254.169.254"
#define INSTANCE_ROLES "/latest/meta-data/iam/security-credentials/"

enum {
    INSTANCE_TIME_LIMIT_MS = 1000, /* of each request: elsewhere than on AWS nobody answers */
    INSTANCE_URL_MAX = 512,
    INSTANCE_ROLE_LEN_MAX = 64,
    INSTANCE_TOKEN_LEN_MAX = 1024,
};

static void ask_instance(struct aws_fetch *fetch, const char *method, const char *path,
                         struct slice role, const char *header, http_client_done done)
{
    char url[INSTANCE_URL_MAX];
    const char *endpoint = fetch->environment->metadata_endpoint;
    const char *const headers[] = {header, NULL};
    struct slice base = slice_of(endpoint ? endpoint : INSTANCE_ENDPOINT);
    while (base.len && base.data[base.len - 1] == '/')
        base.len--;
    int len =
        snprintf(url, sizeof(url), "%.*s%s%.*s", SLICE_FORMAT(base), path, SLICE_FORMAT(role));
    struct http_client_request request = {
        .method = method, .url = url, .headers = headers, .time_limit_ms = INSTANCE_TIME_LIMIT_MS};
    if (len < 0 || (size_t)len >= sizeof(url))
        aws_fetch_fail(fetch, "the URL of the metadata service is too long");
    else
        aws_fetch_send(fetch, &request, done);
}

static void on_instance_keys(void *arg, const struct http_client_response *response)
{
    struct aws_fetch *fetch = arg;
    if (aws_fetch_is_answered(fetch, response))
        aws_fetch_take_json(fetch, response);
}

/* The answer is a list; an instance has one role. */
static void on_instance_role(void *arg, const struct http_client_response *response)
{
    struct aws_fetch *fetch = arg;
    struct slice role;
    if (!aws_fetch_is_answered(fetch, response))
        return;
    slice_split(response->body, '\n', &role);
    if (role.len && role.data[role.len - 1] == '\r')
        role.len--;
    if (!aws_is_header_text(role, INSTANCE_ROLE_LEN_MAX) || memchr(role.data, '/', role.len))
        aws_fetch_fail(fetch, "the instance has no role, or its name is malformed");
    else
        ask_instance(fetch, "GET", INSTANCE_ROLES, role, fetch->token.data, on_instance_keys);
}

static void on_instance_token(void *arg, const struct http_client_response *response)
{
    struct aws_fetch *fetch = arg;
    if (!aws_fetch_is_answered(fetch, response))
        return;
    if (!aws_is_header_text(response->body, INSTANCE_TOKEN_LEN_MAX)) {
        aws_fetch_fail(fetch, "the token of the metadata service is malformed");
        return;
    }
    buffer_append_text(&fetch->token, "X-aws-ec2-metadata-token: ");
    buffer_append_slice(&fetch->token, response->body);
    buffer_append_byte(&fetch->token, '\0');
    if (fetch->token.failed)
        aws_fetch_fail(fetch, "out of memory");
    else
        ask_instance(fetch, "GET", INSTANCE_ROLES, SLICE_NONE, fetch->token.data, on_instance_role);
}

static bool start_instance_fetch(struct aws_fetch *fetch)
{
    if (fetch->environment->metadata_disabled)
        return false;
    ask_instance(fetch, "PUT", "/latest/api/token", SLICE_NONE,
                 "X-aws-ec2-metadata-token-ttl-seconds: 21600", on_instance_token);
    return true;
}

const struct aws_source aws_instance_source = {"instance", start_instance_fetch};
