#include "aws/aws_credentials.h"

#include "aws/aws_fetch.h"
#include "base/backoff.h"
#include "base/container.h"
#include "log/log.h"

#include <stdlib.h>

/* How bad it is that fetches fail, as the log was told since the last success. */
enum aws_trouble { AWS_TROUBLE_NONE, AWS_TROUBLE_FAILING, AWS_TROUBLE_URGENT, AWS_TROUBLE_NO_KEYS };

struct aws_credentials {
    struct aws_credentials_options options;
    struct aws_environment environment;
    struct wheel_timer timer; /* of the next fetch */
    struct random random;
    struct aws_fetch *fetch; /* in flight; NULL: none */
    struct aws_key_set *current;
    struct aws_key_set *previous; /* callers of this turn may still use it */
    int64_t end_ms;               /* of `current`, by the monotonic clock; INT64_MAX: never */
    unsigned failures;            /* in a row */
    enum aws_trouble told;
    char region[];
};

static int64_t credentials_now_ms(const struct aws_credentials *credentials)
{
    return credentials->options.loop->clock.now_ms;
}

static enum aws_trouble credentials_trouble(struct aws_credentials *credentials)
{
    int64_t left_ms = credentials->end_ms - credentials_now_ms(credentials);
    if (!aws_credentials_keys(credentials))
        return AWS_TROUBLE_NO_KEYS;
    return left_ms <= AWS_CREDENTIALS_URGENT_MS ? AWS_TROUBLE_URGENT : AWS_TROUBLE_FAILING;
}

/* ---- what a fetch ended with ---- */

static void take_new_keys(struct aws_credentials *credentials, struct aws_key_set *keys)
{
    int64_t now_ms = credentials_now_ms(credentials);
    int64_t left_ms = keys->ends_at_wall_ms - credentials->options.loop->clock.wall_ms;
    bool ends = keys->ends_at_wall_ms != 0;
    aws_key_set_free(&credentials->previous);
    credentials->previous = credentials->current;
    credentials->current = keys;
    credentials->end_ms = ends ? now_ms + left_ms : INT64_MAX;
    /* keys that last no longer than that are renewed at half of their time */
    int64_t wait_ms = !ends                                ? AWS_CREDENTIALS_REREAD_MS
                      : left_ms > AWS_CREDENTIALS_RENEW_MS ? left_ms - AWS_CREDENTIALS_RENEW_MS
                                                           : left_ms / 2;
    if (wait_ms < AWS_CREDENTIALS_RETRY_MIN_MS)
        wait_ms = AWS_CREDENTIALS_RETRY_MIN_MS;
    loop_set_timer(credentials->options.loop, &credentials->timer, now_ms + wait_ms);
}

static bool are_same_keys(const struct aws_key_set *a, const struct aws_key_set *b)
{
    return a && b && a->text_len == b->text_len && a->ends_at_wall_ms == b->ends_at_wall_ms &&
           memcmp(a->text, b->text, a->text_len) == 0;
}

static void note_credentials_renewed(struct aws_credentials *credentials, struct aws_key_set *keys,
                                     const char *source_name)
{
    bool is_news = !are_same_keys(credentials->current, keys) || credentials->told;
    take_new_keys(credentials, keys);
    credentials->failures = 0;
    credentials->told = AWS_TROUBLE_NONE;
    if (!is_news)
        return;
    if (credentials->end_ms == INT64_MAX)
        log_info("aws_credentials_renewed", "source=%s ends=never", source_name);
    else
        log_info("aws_credentials_renewed", "source=%s ends_in_seconds=%lld", source_name,
                 (long long)(credentials->end_ms - credentials_now_ms(credentials)) / 1000);
}

/* One line for each step from bad to worse. */
static void log_credentials_failure(struct aws_credentials *credentials, enum aws_trouble trouble,
                                    const char *source_name, const char *error)
{
    if (trouble <= credentials->told)
        return;
    credentials->told = trouble;
    const char *reason = log_sentence(slice_of(error));
    if (trouble == AWS_TROUBLE_NO_KEYS)
        log_error("aws_credentials_missing", "source=%s error=%s", source_name, reason);
    else if (trouble == AWS_TROUBLE_URGENT)
        log_error("aws_credentials_ending", "source=%s end_in_seconds=%lld error=%s", source_name,
                  (long long)(credentials->end_ms - credentials_now_ms(credentials)) / 1000,
                  reason);
    else
        log_warn("aws_credentials_not_renewed", "source=%s error=%s", source_name, reason);
}

static void note_credentials_failure(struct aws_credentials *credentials, const char *source_name,
                                     const char *error)
{
    enum aws_trouble trouble = credentials_trouble(credentials);
    int64_t max_ms = trouble == AWS_TROUBLE_FAILING ? AWS_CREDENTIALS_RETRY_MAX_MS
                                                    : AWS_CREDENTIALS_URGENT_RETRY_MAX_MS;
    int64_t wait_ms = backoff_ms(&credentials->random, credentials->failures,
                                 AWS_CREDENTIALS_RETRY_MIN_MS, max_ms);
    credentials->failures++;
    log_credentials_failure(credentials, trouble, source_name, error);
    loop_set_timer(credentials->options.loop, &credentials->timer,
                   credentials_now_ms(credentials) + wait_ms);
}

static void tell_credentials_changed(struct aws_credentials *credentials)
{
    if (credentials->options.on_changed)
        credentials->options.on_changed(credentials->options.arg);
}

static void on_credentials_fetched(void *arg, struct aws_key_set *keys, const char *error)
{
    struct aws_credentials *credentials = arg;
    const char *source_name = credentials->fetch->source_name;
    credentials->fetch = NULL; /* it ends now */
    if (keys && keys->ends_at_wall_ms &&
        keys->ends_at_wall_ms <= credentials->options.loop->clock.wall_ms) {
        aws_key_set_free(&keys);
        error = "the keys have already ended";
    }
    if (keys)
        note_credentials_renewed(credentials, keys, source_name);
    else
        note_credentials_failure(credentials, source_name, error);
    tell_credentials_changed(credentials);
}

static void on_credentials_due(struct wheel_timer *timer)
{
    struct aws_credentials *credentials = CONTAINER_OF(timer, struct aws_credentials, timer);
    struct aws_fetch start = {
        .environment = &credentials->environment,
        .region = credentials->region,
        .http = credentials->options.http,
        .done = on_credentials_fetched,
        .arg = credentials,
    };
    if (aws_fetch_start(&start, &credentials->fetch))
        return;
    note_credentials_failure(credentials, "unknown", "out of memory");
    tell_credentials_changed(credentials);
}

/* ---- life ---- */

struct aws_credentials *aws_credentials_make(const struct aws_credentials_options *options)
{
    size_t region_len = strlen(options->region);
    struct aws_credentials *credentials = calloc(1, sizeof(*credentials) + region_len + 1);
    if (!credentials)
        return NULL;
    credentials->options = *options;
    memcpy(credentials->region, options->region, region_len);
    credentials->timer.fire = on_credentials_due;
    random_init_system(&credentials->random);
    aws_environment_read(&credentials->environment);
    loop_set_timer(options->loop, &credentials->timer, options->loop->clock.now_ms);
    return credentials;
}

void aws_credentials_free(struct aws_credentials **credentials)
{
    struct aws_credentials *freed = *credentials;
    *credentials = NULL;
    if (!freed)
        return;
    loop_cancel_timer(freed->options.loop, &freed->timer);
    aws_fetch_abandon(&freed->fetch);
    aws_key_set_free(&freed->current);
    aws_key_set_free(&freed->previous);
    free(freed);
}

const struct aws_keys *aws_credentials_keys(struct aws_credentials *credentials)
{
    bool usable = credentials->current && credentials_now_ms(credentials) < credentials->end_ms;
    return usable ? &credentials->current->keys : NULL;
}
