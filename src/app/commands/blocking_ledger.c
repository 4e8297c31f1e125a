#include "app/commands/blocking_ledger.h"

#include "ledger/dynamodb/dynamodb_ledger.h"
#include "ledger/ledger_request.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "log/log.h"

#include <stdio.h>
#include <unistd.h>

static void on_blocking_ledger_done(void *arg, struct ledger_request *done)
{
    struct blocking_ledger *blocking = arg;
    pthread_mutex_lock(&blocking->mutex);
    struct ledger_request **end = &blocking->done;
    while (*end)
        end = &(*end)->next;
    *end = done;
    pthread_cond_signal(&blocking->arrived);
    pthread_mutex_unlock(&blocking->mutex);
}

static bool report_ledger_open_failure(const char *command, const char *what, const char *why)
{
    fprintf(stderr, "rollcall %s: %s: %s\n", command, what, why);
    return false;
}

static struct ledger *open_existing_sqlite(const char *command, const char *path)
{
    struct sqlite_ledger_error error;
    if (access(path, F_OK) != 0) {
        report_ledger_open_failure(command, path, "there is no such file");
        return NULL;
    }
    struct ledger *ledger = sqlite_ledger_open(path, NULL, &error);
    if (!ledger)
        report_ledger_open_failure(command, "cannot open the ledger", error.text);
    return ledger;
}

static struct ledger *open_blocking_dynamodb(const char *command, const char *url)
{
    static const struct config_dynamodb SETTINGS = {
        .retry = {.max_attempts = 3, .initial_backoff_ms = 100, .max_backoff_ms = 5000},
        .transaction_conflict = {.max_attempts = 5, .jitter_ms = 50}};
    char error[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    struct ledger *ledger = dynamodb_ledger_open(url, &SETTINGS, error);
    if (!ledger)
        report_ledger_open_failure(command, "cannot open the ledger", error);
    return ledger;
}

bool blocking_ledger_open(struct blocking_ledger *blocking, const char *command, const char *url)
{
    struct slice sqlite = SLICE("sqlite:");
    bool is_sqlite = slice_starts_with(slice_of(url), sqlite);
    if (!is_sqlite && !slice_starts_with(slice_of(url), SLICE("dynamodb://")))
        return report_ledger_open_failure(command, url,
                                          "expected sqlite:PATH or dynamodb://REGION");
    log_init(LOG_LEVEL_WARN, false);
    *blocking = (struct blocking_ledger){
        .ledger = is_sqlite ? open_existing_sqlite(command, url + sqlite.len)
                            : open_blocking_dynamodb(command, url)};
    if (!blocking->ledger)
        return false;
    clock_advance(&blocking->clock);
    pthread_mutex_init(&blocking->mutex, NULL);
    pthread_cond_init(&blocking->arrived, NULL);
    ledger_client_init(&blocking->client, blocking->ledger, &blocking->clock,
                       on_blocking_ledger_done, blocking);
    return true;
}

void blocking_ledger_wait(struct blocking_ledger *blocking)
{
    while (blocking->client.outstanding) {
        pthread_mutex_lock(&blocking->mutex);
        while (!blocking->done)
            pthread_cond_wait(&blocking->arrived, &blocking->mutex);
        struct ledger_request *done = blocking->done;
        blocking->done = NULL;
        pthread_mutex_unlock(&blocking->mutex);
        ledger_complete(done);
    }
}

void blocking_ledger_close(struct blocking_ledger *blocking)
{
    ledger_close(&blocking->ledger);
    pthread_cond_destroy(&blocking->arrived);
    pthread_mutex_destroy(&blocking->mutex);
}
