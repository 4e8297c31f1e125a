/* The endpoint that ECS and EKS give a container. Over plain HTTP only their known addresses and loopback are asked, so
 * that a wrong variable sends the authorization token to nobody else. */
#include "aws/aws_fetch.h"
#include "aws/aws_file.h"

#include <stdio.h>

#define ECS_ENDPOINT "http://169.254.170.2"

enum { CONTAINER_TIME_LIMIT_MS = 2000, CONTAINER_URL_MAX = 2048 };

static bool write_container_url(char out[CONTAINER_URL_MAX],
                                const struct aws_environment *environment)
{
    int len = environment->container_relative_uri
                  ? snprintf(out, CONTAINER_URL_MAX, ECS_ENDPOINT "%s",
                             environment->container_relative_uri)
                  : snprintf(out, CONTAINER_URL_MAX, "%s", environment->container_full_uri);
    return len < CONTAINER_URL_MAX &&
           (!environment->container_relative_uri || environment->container_relative_uri[0] == '/');
}

/* Returns "HOST" of "http://HOST[:PORT]/…", an IPv6 address with its brackets; a user's name counts as part of it. */
static struct slice host_of_plain_url(const char *url)
{
    struct slice rest = slice_after(slice_of(url), strlen("http://"));
    struct slice host = slice_first(rest, rest.len ? strcspn(rest.data, "/?#") : 0);
    size_t digits = 0;
    while (digits < host.len && host.data[host.len - 1 - digits] >= '0' &&
           host.data[host.len - 1 - digits] <= '9')
        digits++;
    bool has_port = host.len > digits && host.data[host.len - 1 - digits] == ':';
    return has_port ? slice_first(host, host.len - 1 - digits) : host;
}

static bool is_known_container_host(struct slice host)
{
    static const char *const known[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (slice_is(host, known[i]))
            return true;
    return false;
}

/* Makes the header of the token, if there is one. Returns false with the reason if it cannot be used. */
static bool write_authorization(struct aws_fetch *fetch, struct buffer *header, const char **error)
{
    const struct aws_environment *environment = fetch->environment;
    const char *path = environment->container_token_file;
    if (path && !aws_file_read(path, &fetch->token)) {
        *error = "the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read";
        return false;
    }
    struct slice token =
        path ? aws_trim(buffer_slice(&fetch->token)) : slice_of(environment->container_token);
    if (!path && !token.len)
        return true;
    for (size_t i = 0; i < token.len; i++)
        if (token.data[i] < ' ' || token.data[i] > '~') {
            *error = "the container's authorization token is malformed";
            return false;
        }
    buffer_append_text(header, "Authorization: ");
    buffer_append_slice(header, token);
    buffer_append_byte(header, '\0');
    *error = "out of memory";
    return !header->failed;
}

static void on_container_answered(void *arg, const struct http_client_response *response)
{
    struct aws_fetch *fetch = arg;
    if (aws_fetch_is_answered(fetch, response))
        aws_fetch_take_json(fetch, response);
}

static bool start_container_fetch(struct aws_fetch *fetch)
{
    char url[CONTAINER_URL_MAX];
    struct buffer header = BUFFER_INIT;
    const char *error = "the container's URL is malformed";
    const struct aws_environment *environment = fetch->environment;
    if (!environment->container_relative_uri && !environment->container_full_uri)
        return false;
    if (!write_container_url(url, environment) || !write_authorization(fetch, &header, &error)) {
        aws_wipe(&header);
        aws_fetch_fail(fetch, error);
        return true;
    }
    const char *const headers[] = {"Accept: application/json", header.data, NULL};
    struct http_client_request request = {
        .method = "GET",
        .url = url,
        .headers = headers,
        .time_limit_ms = CONTAINER_TIME_LIMIT_MS,
        .plain_to_loopback_only = !is_known_container_host(host_of_plain_url(url)),
    };
    aws_fetch_send(fetch, &request, on_container_answered);
    aws_wipe(&header);
    return true;
}

const struct aws_source aws_container_source = {"container", start_container_fetch};
