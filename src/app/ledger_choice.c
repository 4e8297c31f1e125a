#include "app/ledger_choice.h"

#include "config/address.h"
#include "ledger/breaker_ledger.h"
#include "ledger/dynamodb/dynamodb_ledger.h"
#include "ledger/ledger_metrics.h"
#include "ledger/remote/remote_ledger.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "net/tls.h"

#include <limits.h>
#include <stdio.h>

static const struct slice SQLITE = SLICE("sqlite:");
static const struct slice REMOTE = SLICE("remote://");
static const struct slice DYNAMODB = SLICE("dynamodb://");

bool ledger_choice_is_remote(const struct config *config)
{
    return slice_starts_with(slice_of(config->ledger.url), REMOTE);
}

bool ledger_choice_is_dynamodb(const struct config *config)
{
    return slice_starts_with(slice_of(config->ledger.url), DYNAMODB);
}

static struct ledger *explain_choice_failure(char error[LEDGER_CHOICE_ERROR_TEXT_MAX],
                                             const char *what, const char *why)
{
    snprintf(error, LEDGER_CHOICE_ERROR_TEXT_MAX, "%s: %s", what, why);
    return NULL;
}

static struct ledger *open_sqlite_ledger(const char *path, char error[LEDGER_CHOICE_ERROR_TEXT_MAX])
{
    struct sqlite_ledger_error reason;
    struct ledger *ledger = sqlite_ledger_open(path, NULL, &reason);
    if (!ledger)
        snprintf(error, LEDGER_CHOICE_ERROR_TEXT_MAX, "%s", reason.text);
    return ledger;
}

static struct ledger *open_remote_ledger(const struct config *config,
                                         char error[LEDGER_CHOICE_ERROR_TEXT_MAX])
{
    struct address address;
    char tls_error[TLS_ERROR_TEXT_MAX];
    const char *ca_file = config->peer.tls.ca_file;
    bool secure = ca_file[0] || config->peer.tls.certificate_file[0];
    struct remote_ledger_options options = {
        .address = config->ledger.url + REMOTE.len,
        .secret = slice_of(config->peer.secret),
        .name = slice_of(config->gateway.node_id),
    };
    if (!address_parse(slice_of(options.address), &address) || address.port == 0)
        return explain_choice_failure(error, config->ledger.url, "expected remote://HOST:PORT");
    if (options.secret.len == 0)
        return explain_choice_failure(
            error, config->ledger.url,
            "a remote ledger needs peer.secret, the one `rollcall ledger` has");
    if (secure)
        options.tls = tls_context_load_client(ca_file[0] ? ca_file : NULL, tls_error);
    if (secure && !options.tls)
        return explain_choice_failure(error, "peer.tls", tls_error);
    struct ledger *ledger = remote_ledger_open(&options);
    tls_context_drop(&options.tls);
    return ledger ? ledger
                  : explain_choice_failure(error, config->ledger.url, "out of memory or threads");
}

static struct ledger *open_dynamodb_ledger(const struct config *config,
                                           char error[LEDGER_CHOICE_ERROR_TEXT_MAX])
{
    char reason[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    struct ledger *ledger =
        dynamodb_ledger_open(config->ledger.url, &config->durability.dynamodb, reason);
    return ledger ? ledger : explain_choice_failure(error, config->ledger.url, reason);
}

struct ledger *ledger_choice_open(const struct config *config,
                                  char error[LEDGER_CHOICE_ERROR_TEXT_MAX])
{
    struct slice url = slice_of(config->ledger.url);
    char path[PATH_MAX];
    if (ledger_choice_is_remote(config))
        return open_remote_ledger(config, error);
    if (slice_starts_with(url, SQLITE))
        return open_sqlite_ledger(config->ledger.url + SQLITE.len, error);
    if (slice_starts_with(url, DYNAMODB))
        return open_dynamodb_ledger(config, error);
    if (url.len > 0)
        return explain_choice_failure(
            error, config->ledger.url,
            "expected sqlite:PATH, remote://HOST:PORT or dynamodb://REGION");
    snprintf(path, sizeof(path), "%s/ledger.db", config->data_dir);
    return open_sqlite_ledger(path, error);
}

/* ---- the breaker ---- */

static int64_t breaker_clock_ms(void)
{
    return clock_microseconds() / 1000;
}

struct ledger *ledger_choice_open_with_breaker(const struct config *config,
                                               char error[LEDGER_CHOICE_ERROR_TEXT_MAX])
{
    const struct config_circuit_breaker *breaker = &config->gateway.circuit_breaker;
    struct breaker_limits limits = {
        .failure_threshold = breaker->failure_threshold,
        .probe_count = breaker->half_open_probe_count,
        .failure_window_ms = breaker->failure_window_ms,
        .open_duration_ms = breaker->open_duration_ms,
    };
    struct ledger *ledger = ledger_choice_open(config, error);
    if (!ledger)
        return NULL;
    struct ledger *guarded = breaker_ledger_make(ledger, &limits, breaker_clock_ms);
    return guarded ? guarded : explain_choice_failure(error, "start", "out of memory");
}

void ledger_choice_sample(struct ledger *ledger, const struct config *config,
                          struct metrics *metrics)
{
    const struct ledger_metrics *kept = ledger_metrics(ledger);
    bool dynamodb = ledger_choice_is_dynamodb(config);
    bool available = atomic_load(&kept->available);
    metrics_set(metrics, METRIC_CIRCUIT_BREAKER_OPEN,
                breaker_ledger_state(ledger) != BREAKER_CLOSED);
    metrics_set(metrics, METRIC_LEDGER_AVAILABLE, available);
    metrics_set(metrics, METRIC_DYNAMODB_CONFIGURED, dynamodb);
    metrics_set(metrics, METRIC_DYNAMODB_AVAILABLE, dynamodb && available);
    metrics_set(metrics, METRIC_DYNAMODB_THROTTLE_COUNT, (int64_t)atomic_load(&kept->throttles));
    metrics_set(metrics, METRIC_TRANSACTION_COMMITS, (int64_t)atomic_load(&kept->commits));
    metrics_set(metrics, METRIC_TRANSACTION_CONFLICTS, (int64_t)atomic_load(&kept->conflicts));
    metrics_set(metrics, METRIC_DUPLICATE_SEQUENCE,
                (int64_t)atomic_load(&kept->duplicate_sequences));
}
