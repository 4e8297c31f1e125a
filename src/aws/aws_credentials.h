/*
 * The keys with which requests to AWS are signed, fetched and renewed on a loop. Users expect five kinds, in this order;
 * the first one that is configured decides, so that an outage never makes us act as somebody else:
 *
 *   1. environment    AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *   2. web identity   AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN, AWS_ROLE_SESSION_NAME, at the regional STS
 *   3. shared files   ~/.aws/credentials, then ~/.aws/config; AWS_PROFILE
 *   4. container      AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or …_FULL_URI
 *   5. instance       metadata version 2, unless AWS_EC2_METADATA_DISABLED is true
 *
 *   no keys ──fetched──► keys ──15 minutes before their end──► fetching again, old keys in use ──► new keys
 *      ▲ ▲                                                        │ failed: tried again with back-off
 *      │ └────────────────────────── the end of the old keys ◄────┘ (from 10 minutes on, more often and as an error in the log)
 *      └── failed: tried again with back-off, forever
 *
 * Keys without an end are read again every AWS_CREDENTIALS_REREAD_MS, so that a file may be replaced. Keys that have
 * ended are never returned. The log has a line when keys are renewed, when that begins to fail, when it becomes urgent and
 * when there are no keys; it never has a secret.
 *
 * Files are read on the loop's thread: they are local, a few kilobytes at most (AWS_FILE_BYTES_MAX), opened without
 * waiting, and read at the start and at renewals only. HTTP requests go through the client and count against its bound.
 *
 * Threading: the loop's thread. The client may be freed before or after the credentials.
 */
#ifndef ROLLCALL_AWS_AWS_CREDENTIALS_H
#define ROLLCALL_AWS_AWS_CREDENTIALS_H

#include "http_client/http_client.h"
#include "net/loop.h"

#include <stdint.h>

enum {
    AWS_CREDENTIALS_RENEW_MS = 15 * 60 * 1000, /* before the end */
    AWS_CREDENTIALS_URGENT_MS = 10 * 60 * 1000,
    AWS_CREDENTIALS_REREAD_MS = 15 * 60 * 1000,
    AWS_CREDENTIALS_RETRY_MIN_MS = 500,
    AWS_CREDENTIALS_RETRY_MAX_MS = 30 * 1000,
    AWS_CREDENTIALS_URGENT_RETRY_MAX_MS = 5 * 1000,
};

struct aws_credentials;

struct aws_keys {
    const char *access_key_id;
    const char *secret_access_key;
    const char *session_token; /* NULL: none */
};

/* A fetch has ended: there are new keys, or it failed. */
typedef void (*aws_credentials_changed)(void *arg);

struct aws_credentials_options {
    struct loop *loop;
    struct http_client *http;
    const char *region;                 /* copied */
    aws_credentials_changed on_changed; /* may be NULL */
    void *arg;
};

/* Reads the environment's variables; the first fetch begins in the loop's next turn. Returns NULL when out of memory. */
struct aws_credentials *aws_credentials_make(const struct aws_credentials_options *options);

void aws_credentials_free(struct aws_credentials **credentials);

/* Returns NULL while there are none; valid until the next turn of the loop. */
const struct aws_keys *aws_credentials_keys(struct aws_credentials *credentials);

#endif
