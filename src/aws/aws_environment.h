/*
 * The environment variables that AWS's own tools read, as they are when the process starts. An empty variable counts as
 * unset. The texts belong to the process's environment, which nothing changes while it runs.
 */
#ifndef ROLLCALL_AWS_AWS_ENVIRONMENT_H
#define ROLLCALL_AWS_AWS_ENVIRONMENT_H

#include <stdbool.h>

struct aws_environment {
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token;
    const char *web_identity_token_file;
    const char *role_arn;
    const char *role_session_name;
    const char *sts_endpoint;
    const char *profile;
    const char *credentials_file;
    const char *config_file;
    const char *home;
    const char *container_relative_uri;
    const char *container_full_uri;
    const char *container_token;
    const char *container_token_file;
    const char *metadata_endpoint;
    bool metadata_disabled;
};

void aws_environment_read(struct aws_environment *environment);

/* Returns the file whose certificates are trusted (AWS_CA_BUNDLE, else SSL_CERT_FILE); NULL: the system's. */
const char *aws_environment_ca_file(void);

#endif
