#include "aws/aws_environment.h"

#include <stdlib.h>
#include <strings.h>

static const char *environment_value(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

void aws_environment_read(struct aws_environment *environment)
{
    const char *disabled = environment_value("AWS_EC2_METADATA_DISABLED");
    const char *sts_endpoint = environment_value("AWS_ENDPOINT_URL_STS");
    *environment = (struct aws_environment){
        .access_key_id = environment_value("AWS_ACCESS_KEY_ID"),
        .secret_access_key = environment_value("AWS_SECRET_ACCESS_KEY"),
        .session_token = environment_value("AWS_SESSION_TOKEN"),
        .web_identity_token_file = environment_value("AWS_WEB_IDENTITY_TOKEN_FILE"),
        .role_arn = environment_value("AWS_ROLE_ARN"),
        .role_session_name = environment_value("AWS_ROLE_SESSION_NAME"),
        .sts_endpoint = sts_endpoint ? sts_endpoint : environment_value("AWS_ENDPOINT_URL"),
        .profile = environment_value("AWS_PROFILE"),
        .credentials_file = environment_value("AWS_SHARED_CREDENTIALS_FILE"),
        .config_file = environment_value("AWS_CONFIG_FILE"),
        .home = environment_value("HOME"),
        .container_relative_uri = environment_value("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
        .container_full_uri = environment_value("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
        .container_token = environment_value("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        .container_token_file = environment_value("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
        .metadata_endpoint = environment_value("AWS_EC2_METADATA_SERVICE_ENDPOINT"),
        .metadata_disabled = disabled && strcasecmp(disabled, "true") == 0,
    };
}

const char *aws_environment_ca_file(void)
{
    const char *bundle = environment_value("AWS_CA_BUNDLE");
    return bundle ? bundle : environment_value("SSL_CERT_FILE");
}
