#include "aws/aws_fetch.h"

#include "aws/aws_file.h"

#include <stdio.h>
#include <stdlib.h>

/* In the order of aws_credentials.h. */
static const struct aws_source *const sources[] = {
    &aws_environment_source, &aws_web_identity_source, &aws_profile_source,
    &aws_container_source,   &aws_instance_source,     NULL,
};

bool aws_fetch_start(const struct aws_fetch *start, struct aws_fetch **out)
{
    struct aws_fetch *fetch = malloc(sizeof(*fetch));
    if (!fetch)
        return false;
    *fetch = *start;
    *out = fetch;
    for (const struct aws_source *const *source = sources; *source; source++) {
        fetch->source_name = (*source)->name;
        if ((*source)->start(fetch))
            return true;
    }
    fetch->source_name = "none";
    aws_fetch_fail(fetch, "no kind of credentials is configured");
    return true;
}

void aws_fetch_abandon(struct aws_fetch **fetch)
{
    if (*fetch)
        (*fetch)->done = NULL;
    *fetch = NULL;
}

static void end_fetch(struct aws_fetch *fetch, struct aws_key_set *keys, const char *error)
{
    if (fetch->done)
        fetch->done(fetch->arg, keys, error);
    else
        aws_key_set_free(&keys);
    aws_wipe(&fetch->token);
    free(fetch);
}

void aws_fetch_fail(struct aws_fetch *fetch, const char *error)
{
    end_fetch(fetch, NULL, error);
}

void aws_fetch_succeed(struct aws_fetch *fetch, const struct aws_key_text *text)
{
    if (!aws_key_text_is_usable(text)) {
        aws_fetch_fail(fetch, "the keys are incomplete or malformed");
        return;
    }
    struct aws_key_set *keys = aws_key_set_make(text);
    end_fetch(fetch, keys, keys ? NULL : "out of memory");
}

void aws_fetch_send(struct aws_fetch *fetch, struct http_client_request *request,
                    http_client_done done)
{
    request->body_bytes_max = AWS_FETCH_BODY_BYTES_MAX;
    request->ca_file = aws_environment_ca_file();
    if (!http_client_send(fetch->http, request, done, fetch))
        aws_fetch_fail(fetch, "the HTTP client is full or out of memory");
}

bool aws_fetch_is_answered(struct aws_fetch *fetch, const struct http_client_response *response)
{
    if (response->status == 200 && fetch->done)
        return true;
    if (response->error)
        snprintf(fetch->error, sizeof(fetch->error), "%s", response->error);
    else
        snprintf(fetch->error, sizeof(fetch->error), "status %u, expected 200", response->status);
    aws_fetch_fail(fetch, fetch->error);
    return false;
}

void aws_fetch_take_json(struct aws_fetch *fetch, const struct http_client_response *response)
{
    struct aws_key_text text;
    struct buffer copy = BUFFER_INIT; /* parsing modifies it */
    buffer_append_slice(&copy, response->body);
    if (copy.failed)
        aws_fetch_fail(fetch, "out of memory");
    else if (!copy.len || !aws_key_text_read_json(copy.data, copy.len, &text))
        aws_fetch_fail(fetch, "the answer is malformed");
    else
        aws_fetch_succeed(fetch, &text);
    aws_wipe(&copy);
}
