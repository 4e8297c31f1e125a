/*
 * When tokens are replaced. The client reads only `exp` of a token, to replace it before the server closes the
 * connection; the server verifies tokens. Only an application with `fresh_token` has others.
 */
#include "client.h"

#include "text/base64url.h"
#include "text/json.h"

#include <stdlib.h>
#include <string.h>

#define REFRESH_ID "token"
#define TOKEN_SECONDS_MAX 253402300799.0 /* the year 9999 */

enum {
    REFRESH_MARGIN_MS = 60000, /* replace a token this long before it expires … */
    REFRESH_SHORT_LIFE_PART =
        2, /* … or, if that is sooner, after this part of the remaining time */
    REFRESH_PAUSE_MIN_MS =
        1000, /* in case fresh_token() keeps returning tokens that are about to expire */
    EXPIRY_SLACK_MS = 2000, /* a token that expires this soon is not used for a handshake */
};

/* Returns `exp` of the claims in milliseconds, or INT64_MAX. Parsing changes them. */
static int64_t token_read_expiry(char *claims, size_t len)
{
    struct json json;
    struct slice key;
    double seconds = 0;
    json_init(&json, claims, len);
    json_object(&json);
    while (json_member(&json, &key)) {
        if (slice_is(key, "exp") && json_peek(&json) == JSON_NUMBER)
            json_double(&json, &seconds);
        else
            json_skip(&json);
    }
    bool is_valid = json_done(&json) && seconds > 0 && seconds < TOKEN_SECONDS_MAX;
    return is_valid ? (int64_t)(seconds * 1000) : INT64_MAX;
}

/* Returns when the token expires, in milliseconds since 1970; INT64_MAX if it does not say. */
static int64_t token_expiry_ms(const char *token)
{
    struct slice head, claims;
    slice_split(slice_split(slice_of(token), '.', &head), '.', &claims);
    unsigned char *decoded = malloc(base64url_decoded_max(claims.len));
    size_t len = 0;
    int64_t expiry_ms = INT64_MAX;
    if (decoded && base64url_decode(claims, decoded, &len))
        expiry_ms = token_read_expiry((char *)decoded, len);
    free(decoded);
    return expiry_ms;
}

bool token_fetch(struct rollcall *client)
{
    const char *fresh =
        client->options.fresh_token ? client->options.fresh_token(client->options.arg) : NULL;
    char *copy = fresh ? strdup(fresh) : NULL;
    if (!copy)
        return false;
    free(client->token);
    client->token = copy;
    return true;
}

void token_replace_if_expired(struct rollcall *client)
{
    if (client->options.fresh_token &&
        token_expiry_ms(client->token) - EXPIRY_SLACK_MS <= client->clock.wall_ms)
        client->replaced |= token_fetch(client);
}

void token_schedule(struct rollcall *client)
{
    client->token_refusals = 0;
    client->token_due_ms = INT64_MAX;
    int64_t expiry_ms = client->options.fresh_token ? token_expiry_ms(client->token) : INT64_MAX;
    if (expiry_ms == INT64_MAX)
        return;
    int64_t left_ms = expiry_ms - client->clock.wall_ms - client->skew_ms;
    int64_t wait_ms = left_ms - REFRESH_MARGIN_MS;
    if (wait_ms < left_ms / REFRESH_SHORT_LIFE_PART)
        wait_ms = left_ms / REFRESH_SHORT_LIFE_PART;
    client->token_due_ms =
        client->clock.now_ms + (wait_ms > REFRESH_PAUSE_MIN_MS ? wait_ms : REFRESH_PAUSE_MIN_MS);
}

bool token_send(struct rollcall *client)
{
    struct buffer json = BUFFER_INIT;
    json_write_object(&json);
    json_write_key_string(&json, SLICE("type"), SLICE("refresh_token"));
    json_write_key_string(&json, SLICE("id"), SLICE(REFRESH_ID));
    json_write_key_string(&json, SLICE("token"), slice_of(client->token));
    json_write_object_end(&json);
    bool sent = !json.failed && transport_send(client, buffer_slice(&json));
    buffer_free(&json);
    client->token_due_ms = client->clock.now_ms + CLIENT_REPLY_MS;
    return sent;
}

/* Tries again until the token expires; then the server's close leads to a new handshake. */
static void token_retry(struct rollcall *client, int64_t after_ms)
{
    int64_t wait_ms = after_ms > 0 ? after_ms : client_backoff_ms(client, client->token_refusals);
    client->token_refusals++;
    client->token_due_ms = client->clock.now_ms + wait_ms;
}

void token_flush(struct rollcall *client)
{
    if (client->clock.now_ms < client->token_due_ms)
        return;
    if (!client->options.fresh_token) {
        client->token_due_ms = INT64_MAX; /* the application's own refresh was not answered */
        return;
    }
    if (!token_fetch(client) || !token_send(client))
        token_retry(client, 0);
}

bool token_answered(struct rollcall *client, struct slice id, bool accepted, int64_t after_ms)
{
    if (!slice_is(id, REFRESH_ID))
        return false;
    if (accepted)
        token_schedule(client);
    else if (client->options.fresh_token)
        token_retry(client, after_ms);
    return true;
}
