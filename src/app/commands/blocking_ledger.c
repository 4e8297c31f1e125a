#include "app/commands/blocking_ledger.h"

#include "ledger/ledger_request.h"
#include "ledger/sqlite/sqlite_ledger.h"
#include "log/log.h"

#include <stdio.h>
#include <unistd.h>

static void post(void *arg, struct ledger_request *done)
{
    struct blocking_ledger *errand = arg;
    pthread_mutex_lock(&errand->mutex);
    struct ledger_request **end = &errand->done;
    while (*end)
        end = &(*end)->next;
    *end = done;
    pthread_cond_signal(&errand->arrived);
    pthread_mutex_unlock(&errand->mutex);
}

static bool fail(const char *command, const char *what, const char *why)
{
    fprintf(stderr, "rollcall %s: %s: %s\n", command, what, why);
    return false;
}

bool blocking_ledger_open(struct blocking_ledger *errand, const char *command, const char *url)
{
    struct sqlite_ledger_error error;
    struct slice prefix = SLICE("sqlite:");
    if (!slice_starts_with(slice_of(url), prefix))
        return fail(command, url, "expected sqlite:PATH");
    const char *path = url + prefix.len;
    if (access(path, F_OK) != 0)
        return fail(command, path, "there is no such file");
    log_init(LOG_LEVEL_WARN, false);
    *errand = (struct blocking_ledger){.ledger = sqlite_ledger_open(path, NULL, &error)};
    if (!errand->ledger)
        return fail(command, "cannot open the ledger", error.text);
    clock_advance(&errand->clock);
    pthread_mutex_init(&errand->mutex, NULL);
    pthread_cond_init(&errand->arrived, NULL);
    ledger_client_init(&errand->client, errand->ledger, &errand->clock, post, errand);
    return true;
}

void blocking_ledger_wait(struct blocking_ledger *errand)
{
    while (errand->client.outstanding) {
        pthread_mutex_lock(&errand->mutex);
        while (!errand->done)
            pthread_cond_wait(&errand->arrived, &errand->mutex);
        struct ledger_request *done = errand->done;
        errand->done = NULL;
        pthread_mutex_unlock(&errand->mutex);
        ledger_complete(done);
    }
}

void blocking_ledger_close(struct blocking_ledger *errand)
{
    ledger_close(&errand->ledger);
    pthread_cond_destroy(&errand->arrived);
    pthread_mutex_destroy(&errand->mutex);
}
