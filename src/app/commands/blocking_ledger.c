#include "app/commands/blocking_ledger.h"

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

bool blocking_ledger_open(struct blocking_ledger *blocking, const char *command, const char *url)
{
    struct sqlite_ledger_error error;
    struct slice prefix = SLICE("sqlite:");
    if (!slice_starts_with(slice_of(url), prefix))
        return report_ledger_open_failure(command, url, "expected sqlite:PATH");
    const char *path = url + prefix.len;
    if (access(path, F_OK) != 0)
        return report_ledger_open_failure(command, path, "there is no such file");
    log_init(LOG_LEVEL_WARN, false);
    *blocking = (struct blocking_ledger){.ledger = sqlite_ledger_open(path, NULL, &error)};
    if (!blocking->ledger)
        return report_ledger_open_failure(command, "cannot open the ledger", error.text);
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
