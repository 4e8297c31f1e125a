#include "ledger/sqlite/sqlite_ledger.h"

#include "base/random.h"
#include "ledger/ledger_request_queue.h"
#include "ledger/sqlite/sqlite_lock.h"
#include "ledger/sqlite/sqlite_schema.h"
#include "ledger/sqlite/sqlite_thread.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

struct sqlite_ledger {
    struct ledger base;
    int lock;
    struct sqlite_thread_setup setup;
    struct ledger_request_queue writes;
    struct ledger_request_queue reads;
    struct sqlite_thread writer;
    struct sqlite_thread readers[SQLITE_LEDGER_READERS];
    char path[];
};

static uint64_t read_system_clock_us(void)
{
    return (uint64_t)clock_microseconds();
}

static void sqlite_ledger_submit(struct ledger *ledger, struct ledger_request *request)
{
    struct sqlite_ledger *self = (struct sqlite_ledger *)ledger;
    request->submitted_us = self->setup.now_us();
    struct ledger_request_queue *queue =
        ledger_request_writes(request) ? &self->writes : &self->reads;
    if (ledger_request_queue_put(queue, request))
        return;
    ledger_request_fail(request, LEDGER_BUSY);
    ledger_request_finish(request);
}

static void sqlite_ledger_close(struct ledger *ledger)
{
    struct sqlite_ledger *self = (struct sqlite_ledger *)ledger;
    ledger_request_queue_close(&self->writes);
    ledger_request_queue_close(&self->reads);
    /* Stop the readers first, so that the connection that checkpoints closes last. */
    for (size_t i = 0; i < SQLITE_LEDGER_READERS; i++)
        sqlite_thread_stop(&self->readers[i]);
    sqlite_thread_stop(&self->writer);
    ledger_request_queue_destroy(&self->writes);
    ledger_request_queue_destroy(&self->reads);
    sqlite_lock_release(&self->lock);
    free(self);
}

static const struct ledger_backend sqlite_backend = {.submit = sqlite_ledger_submit,
                                                     .close = sqlite_ledger_close};

static bool make_sqlite_queues(struct sqlite_ledger *self, size_t queue_max)
{
    struct ledger_metrics *metrics = &self->base.metrics;
    struct random random;
    random_init_system(&random);
    struct ledger_request_queue_options options = {.count_max = queue_max,
                                                   .slice_cost = SQLITE_LEDGER_SLICE_IDS + 1,
                                                   .seed = random_u64(&random),
                                                   .gauge = &metrics->writes_waiting,
                                                   .over_share = &metrics->over_share};
    if (!ledger_request_queue_init(&self->writes, &options))
        return false;
    options.slice_cost = UINT64_MAX; /* reads do not wait for each other's transactions */
    options.gauge = &metrics->reads_waiting;
    if (ledger_request_queue_init(&self->reads, &options))
        return true;
    ledger_request_queue_destroy(&self->writes);
    return false;
}

static struct sqlite_ledger *make_sqlite_ledger(const char *path,
                                                const struct sqlite_ledger_options *options)
{
    size_t path_bytes = strlen(path) + 1;
    struct sqlite_ledger *self = calloc(1, sizeof(*self) + path_bytes);
    if (!self)
        return NULL;
    memcpy(self->path, path, path_bytes);
    self->base.backend = &sqlite_backend;
    self->lock = -1;
    self->setup = (struct sqlite_thread_setup){.path = self->path,
                                               .vfs = options->vfs,
                                               .now_us = options->now_us ? options->now_us
                                                                         : read_system_clock_us,
                                               .metrics = &self->base.metrics};
    size_t queue_max = options->queue_max ? options->queue_max : LEDGER_QUEUE_MAX;
    if (make_sqlite_queues(self, queue_max))
        return self;
    free(self);
    return NULL;
}

struct ledger *sqlite_ledger_open(const char *path, const struct sqlite_ledger_options *options,
                                  struct sqlite_ledger_error *error)
{
    static const struct sqlite_ledger_options defaults;
    struct sqlite_ledger *self = make_sqlite_ledger(path, options ? options : &defaults);
    /* nobody reads SQLite's own statistics, and they cost a mutex per allocation; too late for a second ledger */
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (!self) {
        snprintf(error->text, sizeof(error->text), "out of memory");
        return NULL;
    }
    self->lock = sqlite_lock_take(path, error->text, sizeof(error->text));
    bool started = self->lock >= 0 && sqlite_thread_start(&self->writer, &self->setup,
                                                          DATABASE_WRITER, &self->writes, error);
    for (size_t i = 0; started && i < SQLITE_LEDGER_READERS; i++)
        started = sqlite_thread_start(&self->readers[i], &self->setup, DATABASE_READER,
                                      &self->reads, error);
    if (!started) {
        sqlite_ledger_close(&self->base);
        return NULL;
    }
    atomic_store(&self->base.metrics.available, true);
    log_info("ledger_opened", "backend=sqlite schema=%d", sqlite_schema_version());
    return &self->base;
}
