/* The kinds of credentials that are at hand: the environment, and the shared files. */
#include "aws/aws_fetch.h"
#include "aws/aws_file.h"
#include "aws/aws_profile.h"

static bool start_environment_fetch(struct aws_fetch *fetch)
{
    const struct aws_environment *environment = fetch->environment;
    if (!environment->access_key_id && !environment->secret_access_key)
        return false;
    aws_fetch_succeed(fetch, &(struct aws_key_text){
                                 .access_key_id = slice_of(environment->access_key_id),
                                 .secret_access_key = slice_of(environment->secret_access_key),
                                 .session_token = slice_of(environment->session_token),
                             });
    return true;
}

const struct aws_source aws_environment_source = {"environment", start_environment_fetch};

static bool start_profile_fetch(struct aws_fetch *fetch)
{
    struct buffer file = BUFFER_INIT;
    struct aws_key_text text;
    const char *error = NULL;
    bool configured = aws_profile_read(fetch->environment, &file, &text, &error);
    if (configured && error)
        aws_fetch_fail(fetch, error);
    else if (configured)
        aws_fetch_succeed(fetch, &text);
    aws_wipe(&file);
    return configured;
}

const struct aws_source aws_profile_source = {"shared_files", start_profile_fetch};
