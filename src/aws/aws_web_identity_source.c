/* Web identity: a token in a file, given by Kubernetes or another issuer, is exchanged for keys at the regional STS. */
#include "aws/aws_fetch.h"
#include "aws/aws_file.h"

#include <ctype.h>
#include <stdio.h>

enum { STS_TIME_LIMIT_MS = 5000, STS_URL_MAX = 512, STS_CODE_MAX = 64 };

static void append_form_value(struct buffer *out, const char *name, struct slice value)
{
    static const char digits[] = "0123456789ABCDEF";
    buffer_printf(out, "&%s=", name);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char byte = (unsigned char)value.data[i];
        if (isalnum(byte) || strchr("-._~", byte)) {
            buffer_append_byte(out, (char)byte);
        } else {
            buffer_append_byte(out, '%');
            buffer_append_byte(out, digits[byte >> 4]);
            buffer_append_byte(out, digits[byte & 15]);
        }
    }
}

/* STS says why in a code, such as ExpiredTokenException. */
static void fail_as_sts_says(struct aws_fetch *fetch, const struct http_client_response *response)
{
    struct slice code = aws_xml_element(response->body, SLICE("Code"));
    if (!aws_is_header_text(code, STS_CODE_MAX)) {
        aws_fetch_is_answered(fetch, response);
        return;
    }
    snprintf(fetch->error, sizeof(fetch->error), "status %u, %.*s", response->status,
             SLICE_FORMAT(code));
    aws_fetch_fail(fetch, fetch->error);
}

static void on_sts_answered(void *arg, const struct http_client_response *response)
{
    struct aws_fetch *fetch = arg;
    struct aws_key_text text;
    if (response->status != 200)
        fail_as_sts_says(fetch, response);
    else if (aws_key_text_read_xml(response->body, &text))
        aws_fetch_succeed(fetch, &text);
    else
        aws_fetch_fail(fetch, "the answer of STS is malformed");
}

static bool write_sts_url(char out[STS_URL_MAX], const struct aws_fetch *fetch)
{
    const char *endpoint = fetch->environment->sts_endpoint;
    bool is_china = strncmp(fetch->region, "cn-", 3) == 0;
    int len = endpoint ? snprintf(out, STS_URL_MAX, "%s", endpoint)
                       : snprintf(out, STS_URL_MAX, "https://sts.%s.amazonaws.com%s/",
                                  fetch->region, is_china ? ".cn" : "");
    return len > 0 && len < STS_URL_MAX;
}

static void send_to_sts(struct aws_fetch *fetch, struct slice form)
{
    static const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded",
                                          "Accept: text/xml", NULL};
    char url[STS_URL_MAX];
    struct http_client_request request = {
        .method = "POST",
        .url = url,
        .headers = headers,
        .body = form,
        .time_limit_ms = STS_TIME_LIMIT_MS,
        .plain_to_loopback_only = true, /* the token is a secret */
    };
    if (write_sts_url(url, fetch))
        aws_fetch_send(fetch, &request, on_sts_answered);
    else
        aws_fetch_fail(fetch, "the URL of STS is too long");
}

static bool start_web_identity_fetch(struct aws_fetch *fetch)
{
    const struct aws_environment *environment = fetch->environment;
    if (!environment->web_identity_token_file || !environment->role_arn)
        return false;
    if (!aws_file_read(environment->web_identity_token_file, &fetch->token)) {
        aws_fetch_fail(fetch, "the file of AWS_WEB_IDENTITY_TOKEN_FILE cannot be read");
        return true;
    }
    const char *session = environment->role_session_name;
    struct buffer form = BUFFER_INIT;
    buffer_append_text(&form, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    append_form_value(&form, "RoleArn", slice_of(environment->role_arn));
    append_form_value(&form, "RoleSessionName", slice_of(session ? session : "rollcall"));
    append_form_value(&form, "WebIdentityToken", aws_trim(buffer_slice(&fetch->token)));
    if (form.failed)
        aws_fetch_fail(fetch, "out of memory");
    else
        send_to_sts(fetch, buffer_slice(&form));
    aws_wipe(&form);
    return true;
}

const struct aws_source aws_web_identity_source = {"web_identity", start_web_identity_fetch};
