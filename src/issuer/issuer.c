#include "issuer/issuer.h"

#include "base/container.h"
#include "http_client/http_client.h"
#include "issuer/kept_set.h"
#include "log/log.h"
#include "net/mailbox.h"

#include <pthread.h>
#include <stdlib.h>

enum { TICK_MS = 1000 };

enum issuer_health { ISSUER_UNTRIED, ISSUER_GOOD, ISSUER_BAD };

struct issuer {
    struct issuer_options options;
    struct loop loop;
    struct mailbox mailbox;
    struct http_client *client;
    struct wheel_timer tick;
    struct key_set *keys; /* the last good ones */
    struct buffer text;   /* from which they were read */
    enum issuer_health health;
    int64_t fetched_at_wall_ms; /* when the keys came; without any: the start */
    int64_t started_ms;         /* of the last fetch */
    int64_t due_ms;             /* of the next one */
    bool fetching;
    struct mail wake; /* in the mailbox while `woken` is true */
    atomic_bool woken;
    atomic_bool asked;
    bool running;
    pthread_t thread;
};

static void tell_issuer_keys(struct issuer *issuer)
{
    issuer->options.on_keys(issuer->options.arg, issuer->keys ? key_set_share(issuer->keys) : NULL);
}

/* ---- answers ---- */

static void set_issuer_health(struct issuer *issuer, enum issuer_health health, const char *why)
{
    if (health == ISSUER_BAD && issuer->health != ISSUER_BAD)
        log_warn("issuer_keys_not_fetched", "url=%s error=%s effect=%s",
                 log_quote(slice_of(issuer->options.url)), log_sentence(slice_of(why)),
                 log_sentence(slice_of(issuer->keys ? "the last good keys are used"
                                                    : "tokens of this issuer are refused")));
    if (health == ISSUER_GOOD && issuer->health != ISSUER_GOOD)
        log_info("issuer_keys_fetched", "url=%s keys=%zu", log_quote(slice_of(issuer->options.url)),
                 key_set_count(issuer->keys));
    issuer->health = health;
}

/* Takes the set if it can be used, and keeps it. Returns false with the reason otherwise. */
static bool take_issuer_set(struct issuer *issuer, struct slice body, struct auth_error *error)
{
    if (issuer->keys && slice_equal(buffer_slice(&issuer->text), body))
        return true;
    struct buffer copy = BUFFER_INIT; /* parsing modifies it */
    struct buffer text = BUFFER_INIT;
    buffer_append_slice(&copy, body);
    buffer_append_slice(&text, body);
    buffer_append_byte(&copy, '\0');
    struct key_set *keys =
        copy.failed || text.failed ? NULL : key_set_parse("the issuer", copy.data, body.len, error);
    buffer_free(&copy);
    if (!keys) {
        buffer_free(&text);
        return false;
    }
    buffer_free(&issuer->text);
    key_set_release(&issuer->keys);
    issuer->text = text;
    issuer->keys = keys;
    if (!kept_set_write(issuer->options.kept_file, body))
        log_warn("issuer_keys_not_kept", "file=%s", log_quote(slice_of(issuer->options.kept_file)));
    return true;
}

static void on_issuer_answered(void *arg, const struct http_client_response *response)
{
    struct issuer *issuer = arg;
    struct auth_error error = {"out of memory"};
    bool good = false;
    if (response->error)
        auth_error_set(&error, "%s", response->error);
    else if (response->status != 200)
        auth_error_set(&error, "status %u, expected 200", response->status);
    else
        good = take_issuer_set(issuer, response->body, &error);
    const struct clock *clock = &issuer->loop.clock;
    int64_t wait_ms = good || issuer->options.refresh_ms < ISSUER_RETRY_MS
                          ? issuer->options.refresh_ms
                          : ISSUER_RETRY_MS;
    issuer->fetching = false;
    issuer->due_ms = clock->now_ms + wait_ms;
    if (good)
        issuer->fetched_at_wall_ms = clock->wall_ms;
    metrics_count(issuer->options.metrics, good ? METRIC_JWKS_REFRESHES : METRIC_JWKS_FAILURES);
    set_issuer_health(issuer, good ? ISSUER_GOOD : ISSUER_BAD, error.text);
    tell_issuer_keys(issuer);
}

/* ---- fetching ---- */

static void fetch_issuer_keys(struct issuer *issuer)
{
    static const char *const headers[] = {"Accept: application/jwk-set+json, application/json",
                                          NULL};
    struct http_client_request request = {
        .method = "GET",
        .url = issuer->options.url,
        .headers = headers,
        .ca_file = issuer->options.ca_file,
        .time_limit_ms = ISSUER_TIME_LIMIT_MS,
        .body_bytes_max = ISSUER_SET_BYTES_MAX,
        .plain_to_loopback_only = true,
    };
    atomic_store(&issuer->asked, false);
    issuer->started_ms = issuer->loop.clock.now_ms;
    issuer->fetching = http_client_send(issuer->client, &request, on_issuer_answered, issuer);
    if (!issuer->fetching) {
        issuer->due_ms = issuer->started_ms + ISSUER_RETRY_MS;
        metrics_count(issuer->options.metrics, METRIC_JWKS_FAILURES);
        tell_issuer_keys(issuer);
    }
}

static void fetch_issuer_keys_if_due(struct issuer *issuer)
{
    int64_t now_ms = issuer->loop.clock.now_ms;
    bool wanted = atomic_load(&issuer->asked) || now_ms >= issuer->due_ms;
    if (wanted && !issuer->fetching && now_ms >= issuer->started_ms + ISSUER_FETCH_MS)
        fetch_issuer_keys(issuer);
}

/* Somebody asked; if it is too early for the next fetch, a timer starts it. */
static void on_issuer_woken(struct mail *mail, void *owner)
{
    struct issuer *issuer = owner;
    (void)mail;
    atomic_store(&issuer->woken, false);
    fetch_issuer_keys_if_due(issuer);
    if (atomic_load(&issuer->asked) && !issuer->fetching)
        loop_set_timer(&issuer->loop, &issuer->tick, issuer->started_ms + ISSUER_FETCH_MS);
}

static void on_issuer_tick(struct wheel_timer *timer)
{
    struct issuer *issuer = CONTAINER_OF(timer, struct issuer, tick);
    const struct clock *clock = &issuer->loop.clock;
    loop_set_timer(&issuer->loop, timer, clock->now_ms + TICK_MS);
    fetch_issuer_keys_if_due(issuer);
    metrics_set(issuer->options.metrics, METRIC_JWKS_AGE,
                (clock->wall_ms - issuer->fetched_at_wall_ms) / 1000);
}

void issuer_ask(struct issuer *issuer)
{
    atomic_store(&issuer->asked, true);
    if (!atomic_exchange(&issuer->woken, true))
        mailbox_post(&issuer->mailbox, &issuer->wake);
}

/* ---- life ---- */

static void read_issuer_kept_set(struct issuer *issuer)
{
    struct auth_error error;
    if (!kept_set_read(issuer->options.kept_file, &issuer->text, &issuer->fetched_at_wall_ms))
        return;
    struct buffer copy = BUFFER_INIT;
    buffer_append_slice(&copy, buffer_slice(&issuer->text));
    size_t len = copy.len;
    buffer_append_byte(&copy, '\0');
    if (!copy.failed)
        issuer->keys = key_set_parse(issuer->options.kept_file, copy.data, len, &error);
    if (!issuer->keys)
        log_warn("issuer_kept_keys_unusable", "file=%s",
                 log_quote(slice_of(issuer->options.kept_file)));
    buffer_free(&copy);
}

struct issuer *issuer_make(const struct issuer_options *options)
{
    struct issuer *issuer = calloc(1, sizeof(*issuer));
    if (!issuer)
        return NULL;
    issuer->options = *options;
    issuer->wake.on_open = on_issuer_woken;
    issuer->tick.fire = on_issuer_tick;
    bool has_loop = loop_init(&issuer->loop);
    if (!has_loop || !mailbox_init(&issuer->mailbox, &issuer->loop, MAILBOX_UNBOUNDED, issuer)) {
        if (has_loop)
            loop_free(&issuer->loop);
        free(issuer);
        return NULL;
    }
    issuer->fetched_at_wall_ms = issuer->loop.clock.wall_ms;
    issuer->started_ms = issuer->loop.clock.now_ms - ISSUER_FETCH_MS;
    issuer->client = http_client_make(&issuer->loop, 1);
    read_issuer_kept_set(issuer);
    return issuer;
}

struct key_set *issuer_kept_keys(const struct issuer *issuer)
{
    return issuer->keys ? key_set_share(issuer->keys) : NULL;
}

static void *run_issuer(void *arg)
{
    struct issuer *issuer = arg;
    on_issuer_tick(&issuer->tick);
    loop_run(&issuer->loop);
    return NULL;
}

bool issuer_start(struct issuer *issuer)
{
    issuer->running =
        issuer->client && pthread_create(&issuer->thread, NULL, run_issuer, issuer) == 0;
    return issuer->running;
}

static void on_issuer_stopped(struct mail *mail, void *owner)
{
    struct issuer *issuer = owner;
    (void)mail;
    loop_stop(&issuer->loop);
}

void issuer_free(struct issuer **issuer)
{
    struct issuer *freed = *issuer;
    struct mail stop = {.on_open = on_issuer_stopped};
    *issuer = NULL;
    if (!freed)
        return;
    if (freed->running) {
        mailbox_post(&freed->mailbox, &stop);
        pthread_join(freed->thread, NULL);
    }
    http_client_free(&freed->client);
    mailbox_free(&freed->mailbox);
    loop_free(&freed->loop);
    key_set_release(&freed->keys);
    buffer_free(&freed->text);
    free(freed);
}
