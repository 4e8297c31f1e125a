#include "disk/disk.h"

#include "base/container.h"
#include "disk/disk_internal.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct disk disk = {.files = {&disk.files, &disk.files},
                    .connections = {&disk.connections, &disk.connections}};

void disk_fail(int code)
{
    disk.failure = code;
}

/* ---- files ---- */

static struct disk_file *disk_find(const char *path, bool create)
{
    const struct machine *machine = kernel_process() ? kernel_process()->machine : NULL;
    for (struct list *at = disk.files.next; at != &disk.files; at = at->next) {
        struct disk_file *file = CONTAINER_OF(at, struct disk_file, place);
        if (file->machine == machine && strcmp(file->path, path) == 0)
            return file;
    }
    if (!create || !machine)
        return NULL;
    struct disk_file *file = kernel_alloc(sizeof(*file));
    snprintf(file->path, sizeof(file->path), "%s", path);
    file->machine = machine;
    list_append(&disk.files, &file->place);
    return file;
}

static void disk_forget_undo(struct disk_file *file)
{
    while (file->undo) {
        struct disk_undo *undo = file->undo;
        file->undo = undo->next;
        kernel_free(undo);
    }
}

static void disk_resize(struct disk_file *file, size_t bytes)
{
    if (bytes > file->capacity) {
        file->capacity = 2 * bytes;
        file->data = kernel_realloc(file->data, file->capacity);
    }
    if (bytes > file->bytes)
        memset(file->data + file->bytes, 0, bytes - file->bytes);
    file->bytes = bytes;
}

/* Remembers what the bytes were, newest first. */
static void disk_remember(struct disk_file *file, size_t at, size_t bytes)
{
    size_t kept = at < file->bytes ? file->bytes - at : 0;
    if (kept > bytes)
        kept = bytes;
    struct disk_undo *undo = kernel_realloc(NULL, sizeof(*undo) + kept); /* not zeroed */
    *undo =
        (struct disk_undo){.next = file->undo, .at = at, .bytes = kept, .file_bytes = file->bytes};
    if (kept > 0)
        memcpy(undo->data, file->data + at, kept);
    file->undo = undo;
}

/* The newest writes are lost; how many is drawn. */
static void disk_undo_some(struct disk_file *file)
{
    size_t count = 0;
    for (const struct disk_undo *at = file->undo; at; at = at->next)
        count++;
    size_t lost = (size_t)random_below(kernel_random(), count + 1);
    for (const struct disk_undo *at = file->undo; at && lost > 0; at = at->next, lost--) {
        disk_resize(file, at->file_bytes);
        if (at->bytes > 0)
            memcpy(file->data + at->at, at->data, at->bytes);
    }
    disk_forget_undo(file);
}

static void disk_free_file(struct disk_file *file)
{
    disk_forget_undo(file);
    disk_free_regions(file);
    list_remove(&file->place);
    kernel_free(file->data);
    kernel_free(file);
}

void disk_clear(void)
{
    while (!list_empty(&disk.files))
        disk_free_file(CONTAINER_OF(disk.files.next, struct disk_file, place));
}

/* ---- what SQLite calls ---- */

static int disk_close(sqlite3_file *handle)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    if (!self->is_dead) {
        disk_unlock(self);
        disk_leave_regions(self);
    }
    if (self->is_temporary)
        disk_free_file(self->file);
    return SQLITE_OK;
}

static int disk_read(sqlite3_file *handle, void *data, int bytes, sqlite3_int64 at)
{
    const struct disk_handle *self = (struct disk_handle *)handle;
    size_t left = (size_t)at < self->file->bytes ? self->file->bytes - (size_t)at : 0;
    size_t got = left < (size_t)bytes ? left : (size_t)bytes;
    if (self->is_dead)
        return SQLITE_IOERR_READ;
    if (got > 0)
        memcpy(data, self->file->data + at, got);
    memset((char *)data + got, 0, (size_t)bytes - got);
    return got == (size_t)bytes ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int disk_write(sqlite3_file *handle, const void *data, int bytes, sqlite3_int64 at)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    if (self->is_dead)
        return SQLITE_IOERR_WRITE;
    if (disk.failure)
        return disk.failure;
    disk_remember(self->file, (size_t)at, (size_t)bytes);
    if ((size_t)at + (size_t)bytes > self->file->bytes)
        disk_resize(self->file, (size_t)at + (size_t)bytes);
    memcpy(self->file->data + at, data, (size_t)bytes);
    return SQLITE_OK;
}

static int disk_truncate(sqlite3_file *handle, sqlite3_int64 bytes)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    if (self->is_dead)
        return SQLITE_IOERR_TRUNCATE;
    disk_remember(self->file, (size_t)bytes, self->file->bytes);
    disk_resize(self->file, (size_t)bytes);
    return SQLITE_OK;
}

static int disk_sync(sqlite3_file *handle, int flags)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    (void)flags;
    if (self->is_dead)
        return SQLITE_IOERR_FSYNC;
    if (disk.failure)
        return disk.failure;
    disk_forget_undo(self->file);
    return SQLITE_OK;
}

static int disk_size(sqlite3_file *handle, sqlite3_int64 *out)
{
    *out = (sqlite3_int64)((struct disk_handle *)handle)->file->bytes;
    return SQLITE_OK;
}

static int disk_control(sqlite3_file *handle, int operation, void *arg)
{
    (void)handle, (void)operation, (void)arg;
    return SQLITE_NOTFOUND;
}

static int disk_sector(sqlite3_file *handle)
{
    (void)handle;
    return 4096;
}

static int disk_traits(sqlite3_file *handle)
{
    (void)handle;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods METHODS = {
    .iVersion = 2,
    .xClose = disk_close,
    .xRead = disk_read,
    .xWrite = disk_write,
    .xTruncate = disk_truncate,
    .xSync = disk_sync,
    .xFileSize = disk_size,
    .xLock = disk_take_lock,
    .xUnlock = disk_lower_lock,
    .xCheckReservedLock = disk_check_reserved,
    .xFileControl = disk_control,
    .xSectorSize = disk_sector,
    .xDeviceCharacteristics = disk_traits,
    .xShmMap = disk_map_region,
    .xShmLock = disk_lock_region,
    .xShmBarrier = disk_region_barrier,
    .xShmUnmap = disk_unmap_regions,
};

static int disk_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *handle, int flags,
                     int *out_flags)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    char temporary[32];
    (void)vfs;
    *self = (struct disk_handle){.process = kernel_process(), .is_temporary = path == NULL};
    if (!path) {
        snprintf(temporary, sizeof(temporary), "temporary-%u", disk.temporary_count++);
        path = temporary;
    }
    self->file = disk_find(path, flags & SQLITE_OPEN_CREATE);
    if (!self->file)
        return SQLITE_CANTOPEN;
    self->base.pMethods = &METHODS;
    if (out_flags)
        *out_flags = flags;
    return SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct disk_file *file = disk_find(path, false);
    (void)vfs, (void)sync;
    if (file)
        disk_free_file(file);
    return SQLITE_OK;
}

static int disk_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    (void)vfs, (void)flags;
    *out = disk_find(path, false) != NULL;
    return SQLITE_OK;
}

static int disk_full_path(sqlite3_vfs *vfs, const char *path, int bytes, char *out)
{
    (void)vfs;
    snprintf(out, (size_t)bytes, "%s", path);
    return SQLITE_OK;
}

static int disk_random(sqlite3_vfs *vfs, int bytes, char *out)
{
    (void)vfs;
    random_bytes(&kernel_process()->random, out, (size_t)bytes);
    return bytes;
}

static int disk_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    thread_wait(us);
    return us;
}

static int disk_time(sqlite3_vfs *vfs, sqlite3_int64 *out)
{
    static const sqlite3_int64 JULIAN_EPOCH_MS = INT64_C(210866760000000);
    (void)vfs;
    *out = JULIAN_EPOCH_MS + machine_wall_us(kernel_process()->machine) / 1000;
    return SQLITE_OK;
}

void disk_register(void)
{
    static sqlite3_vfs vfs = {
        .iVersion = 2,
        .szOsFile = sizeof(struct disk_handle),
        .mxPathname = 256,
        .zName = "sim",
        .xOpen = disk_open,
        .xDelete = disk_delete,
        .xAccess = disk_access,
        .xFullPathname = disk_full_path,
        .xRandomness = disk_random,
        .xSleep = disk_sleep,
        .xCurrentTimeInt64 = disk_time,
    };
    if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
        abort();
}

/* ---- connections, which a crash leaves open ---- */

struct disk_connection {
    struct list place;
    struct process *process;
    sqlite3 *handle;
};

int __real_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);
int __wrap_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs);
int __real_sqlite3_close(sqlite3 *handle);
int __wrap_sqlite3_close(sqlite3 *handle);

int __wrap_sqlite3_open_v2(const char *path, sqlite3 **out, int flags, const char *vfs)
{
    int status = __real_sqlite3_open_v2(path, out, flags, vfs);
    struct disk_connection *connection = kernel_alloc(sizeof(*connection));
    connection->process = kernel_process();
    connection->handle = *out;
    list_append(&disk.connections, &connection->place);
    return status;
}

int __wrap_sqlite3_close(sqlite3 *handle)
{
    for (struct list *at = disk.connections.next; at != &disk.connections; at = at->next) {
        struct disk_connection *connection = CONTAINER_OF(at, struct disk_connection, place);
        if (connection->handle != handle)
            continue;
        list_remove(at);
        kernel_free(connection);
        break;
    }
    return __real_sqlite3_close(handle);
}

static void disk_drop_connection(struct disk_connection *connection)
{
    sqlite3_stmt *statement;
    while ((statement = sqlite3_next_stmt(connection->handle, NULL)))
        sqlite3_finalize(statement);
    __real_sqlite3_close(connection->handle);
    list_remove(&connection->place);
    kernel_free(connection);
}

static void disk_bury(struct disk_connection *connection)
{
    struct disk_handle *handles[2] = {NULL, NULL};
    sqlite3_file_control(connection->handle, "main", SQLITE_FCNTL_FILE_POINTER, &handles[0]);
    sqlite3_file_control(connection->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &handles[1]);
    for (size_t i = 0; i < 2; i++) {
        if (!handles[i] || !handles[i]->base.pMethods || handles[i]->is_dead)
            continue;
        disk_unlock(handles[i]);
        disk_leave_regions(handles[i]);
        handles[i]->is_dead = true;
    }
}

void disk_release(struct process *process, bool lost_power)
{
    struct list *next;
    for (struct list *at = disk.connections.next; at != &disk.connections; at = at->next) {
        struct disk_connection *connection = CONTAINER_OF(at, struct disk_connection, place);
        if (connection->process == process)
            disk_bury(connection);
    }
    for (struct list *at = disk.connections.next; at != &disk.connections; at = next) {
        struct disk_connection *connection = CONTAINER_OF(at, struct disk_connection, place);
        next = at->next;
        if (connection->process == process)
            disk_drop_connection(connection);
    }
    for (struct list *at = disk.files.next; lost_power && at != &disk.files; at = at->next) {
        struct disk_file *file = CONTAINER_OF(at, struct disk_file, place);
        if (file->machine == process->machine)
            disk_undo_some(file);
    }
}
