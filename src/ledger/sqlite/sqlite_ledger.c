#include "ledger/sqlite/sqlite_ledger.h"

#include "ledger/ledger_request_queue.h"
#include "ledger/sqlite/sqlite_lock.h"
#include "ledger/sqlite/sqlite_schema.h"
#include "ledger/sqlite/sqlite_worker.h"
#include "log/log.h"

#include <stdio.h>
#include <stdlib.h>

struct sqlite_ledger {
    struct ledger base;
    int lock;
    struct ledger_request_queue writes;
    struct ledger_request_queue reads;
    struct sqlite_worker writer;
    struct sqlite_worker readers[SQLITE_LEDGER_READERS];
    char path[];
};

static void submit(struct ledger *ledger, struct ledger_request *request)
{
    struct sqlite_ledger *self = (struct sqlite_ledger *)ledger;
    request->submitted_us = sqlite_worker_now_us();
    struct ledger_request_queue *queue =
        ledger_request_writes(request) ? &self->writes : &self->reads;
    if (ledger_request_queue_put(queue, request))
        return;
    ledger_request_fail(request, LEDGER_BUSY);
    ledger_request_finish(request);
}

static void stop_workers(struct sqlite_ledger *self)
{
    ledger_request_queue_close(&self->writes);
    ledger_request_queue_close(&self->reads);
    /* Readers first, so that the connection that checkpoints is the last to close. */
    for (size_t i = 0; i < SQLITE_LEDGER_READERS; i++)
        sqlite_worker_stop(&self->readers[i]);
    sqlite_worker_stop(&self->writer);
}

static void free_ledger(struct ledger *ledger)
{
    struct sqlite_ledger *self = (struct sqlite_ledger *)ledger;
    stop_workers(self);
    ledger_request_queue_destroy(&self->writes);
    ledger_request_queue_destroy(&self->reads);
    sqlite_lock_release(&self->lock);
    free(self);
}

static const struct ledger_backend sqlite_backend = {.submit = submit, .close = free_ledger};

static struct sqlite_ledger *allocate(const char *path, const struct sqlite_ledger_options *options)
{
    size_t path_bytes = strlen(path) + 1;
    struct sqlite_ledger *self = calloc(1, sizeof(*self) + path_bytes);
    if (!self)
        return NULL;
    memcpy(self->path, path, path_bytes);
    self->base.backend = &sqlite_backend;
    self->lock = -1;
    size_t queue_max = options->queue_max ? options->queue_max : LEDGER_QUEUE_MAX;
    ledger_request_queue_init(&self->writes, queue_max, &self->base.metrics.writes_waiting);
    ledger_request_queue_init(&self->reads, queue_max, &self->base.metrics.reads_waiting);
    return self;
}

static bool start(struct sqlite_ledger *self, const char *vfs, struct sqlite_ledger_error *error)
{
    self->lock = sqlite_lock_take(self->path, error->text, sizeof(error->text));
    if (self->lock < 0)
        return false;
    struct sqlite_worker_setup setup = {self->path, vfs, &self->base.metrics};
    bool started = sqlite_worker_start_writer(&self->writer, &setup, &self->writes, error->text,
                                              sizeof(error->text));
    for (size_t i = 0; started && i < SQLITE_LEDGER_READERS; i++)
        started = sqlite_worker_start_reader(&self->readers[i], &setup, &self->reads, error->text,
                                             sizeof(error->text));
    return started;
}

struct ledger *sqlite_ledger_open(const char *path, const struct sqlite_ledger_options *options,
                                  struct sqlite_ledger_error *error)
{
    static const struct sqlite_ledger_options defaults;
    if (!options)
        options = &defaults;
    struct sqlite_ledger *self = allocate(path, options);
    if (!self) {
        snprintf(error->text, sizeof(error->text), "out of memory");
        return NULL;
    }
    if (!start(self, options->vfs, error)) {
        free_ledger(&self->base);
        return NULL;
    }
    atomic_store(&self->base.metrics.available, true);
    log_info("ledger_opened", "backend=sqlite schema=%d", sqlite_schema_version());
    return &self->base;
}
