/* How a connection begins and ends. */
#include "client.h"

#include "text/time_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 16000,
    BACKOFF_JITTER_PERCENT = 20,
    HEARTBEAT_DEFAULT_MS = 5000,
    EXPIRY_DEFAULT_MS = 15000,
};

/* Tests set `hurry` to shorten all waits. */
static int64_t reconnect_shorten(const struct rollcall *client, int64_t wait_ms)
{
    return client->options.hurry > 1 ? wait_ms / client->options.hurry : wait_ms;
}

int64_t client_backoff_ms(struct rollcall *client, unsigned failures)
{
    int64_t base_ms = BACKOFF_FIRST_MS;
    for (unsigned i = 0; i < failures && base_ms < BACKOFF_MAX_MS; i++)
        base_ms *= 2;
    int64_t jitter_ms = base_ms * BACKOFF_JITTER_PERCENT / 100;
    int64_t wait_ms =
        base_ms - jitter_ms + (int64_t)random_below(&client->random, (uint64_t)(2 * jitter_ms + 1));
    return reconnect_shorten(client, wait_ms);
}

int64_t client_milliseconds(double seconds)
{
    if (!(seconds > 0))
        return 0;
    double ms = seconds * 1000;
    return ms < CLIENT_WAIT_MAX_MS ? (int64_t)ms : CLIENT_WAIT_MAX_MS;
}

/* Replaces a refused token once. If there is no fresh one, or it is refused too, the client stops. */
static bool reconnect_replace_token(struct rollcall *client)
{
    if (!client->refused)
        return true;
    if (client->replaced || !token_fetch(client))
        return false;
    client->refused = false;
    client->replaced = true;
    return true;
}

/* The wait that the server asks for wins over the back-off. */
static int64_t reconnect_wait_ms(struct rollcall *client)
{
    int64_t now_ms = client->clock.now_ms;
    int64_t own_ms = client_backoff_ms(client, client->attempts++);
    if (client->server_retry_at_ms >= 0) {
        int64_t left_ms = client->server_retry_at_ms - now_ms;
        return left_ms > 0 ? reconnect_shorten(client, left_ms) : 0;
    }
    if (client->at_once)
        return 0;
    int64_t least_ms = reconnect_shorten(client, client->not_before_ms - now_ms);
    return own_ms > least_ms ? own_ms : least_ms;
}

void client_lost(struct rollcall *client, const char *why)
{
    bool for_good = client->stop_after || client->closing;
    int64_t now_ms = client->clock.now_ms;
    if (client->established_ms >= 0 && now_ms - client->established_ms >= CLIENT_STABLE_MS)
        client->attempts = 0;
    client->established_ms = -1;
    transport_drop(client);
    chats_reset(client);
    outbox_reset(client);
    commands_reset(client);
    if (client->state == ROLLCALL_STOPPED)
        return;
    snprintf(client->lost_why, sizeof(client->lost_why), "%s", why);
    client->lost_code = for_good ? "CLOSED" : client->refused ? "UNAUTHENTICATED" : "DISCONNECTED";
    if (for_good || !reconnect_replace_token(client)) {
        client_set_state(client, ROLLCALL_STOPPED);
        return;
    }
    client->retry_at_ms = now_ms + reconnect_wait_ms(client);
    client->server_retry_at_ms = -1;
    client->at_once = false;
    client_set_state(client, ROLLCALL_BACKOFF);
}

void client_connect(struct rollcall *client)
{
    client->deadline_ms = client->clock.now_ms + CLIENT_HANDSHAKE_MS;
    client_set_state(client, ROLLCALL_CONNECTING);
    token_replace_if_expired(client);
    transport_connect(client);
}

void client_note_closing(struct rollcall *client, bool reconnect_allowed, int64_t after_ms)
{
    client->stop_after |= !reconnect_allowed;
    if (after_ms < 0)
        return;
    if (after_ms > CLIENT_WAIT_MAX_MS)
        after_ms = CLIENT_WAIT_MAX_MS;
    client->server_retry_at_ms = client->clock.now_ms + after_ms;
}

bool client_established(struct rollcall *client, const char *user_id, double heartbeat_s,
                        double expiry_s, struct slice server_time)
{
    if (client->state != ROLLCALL_CONNECTING)
        return true;
    char *copy = strdup(user_id);
    if (!copy)
        return false;
    free(client->user_id);
    client->user_id = copy;
    int64_t heartbeat_ms = client_milliseconds(heartbeat_s);
    int64_t expiry_ms = client_milliseconds(expiry_s);
    client->heartbeat_ms = heartbeat_ms > 0 ? heartbeat_ms : HEARTBEAT_DEFAULT_MS;
    client->expiry_ms = expiry_ms > 0 ? expiry_ms : EXPIRY_DEFAULT_MS;
    client->established_ms = client->clock.now_ms;
    client->replaced = false;
    int64_t server_ms;
    client->skew_ms =
        time_text_parse(server_time, &server_ms) ? server_ms - client->clock.wall_ms : 0;
    token_schedule(client);
    client_set_state(client, ROLLCALL_SYNCING);
    client_heartbeat(client);
    return true;
}
