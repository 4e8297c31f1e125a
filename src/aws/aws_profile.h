/*
 * The files shared by AWS's tools: ~/.aws/credentials (sections [NAME]) and ~/.aws/config (sections [profile NAME] and
 * [default]); AWS_SHARED_CREDENTIALS_FILE and AWS_CONFIG_FILE name others, AWS_PROFILE the section. Keys of a profile come
 * from one file, the first that has any. Profiles that tell how to get keys (role_arn, credential_process, sso_…) are not
 * supported and said to be so.
 */
#ifndef ROLLCALL_AWS_AWS_PROFILE_H
#define ROLLCALL_AWS_AWS_PROFILE_H

#include "aws/aws_environment.h"
#include "aws/aws_key_text.h"
#include "base/buffer.h"

#include <stdbool.h>

/* Returns false when no profile is configured: AWS_PROFILE is unset and the files have no [default] with keys. Otherwise
 * *out points into *file, which the caller wipes; or *error, static, says what is wrong with the profile. */
bool aws_profile_read(const struct aws_environment *environment, struct buffer *file,
                      struct aws_key_text *out, const char **error);

#endif
