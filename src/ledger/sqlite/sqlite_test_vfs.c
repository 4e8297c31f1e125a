#include "ledger/sqlite/sqlite_test_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *inner; /* follows this struct in the memory that SQLite allocated */
};

static struct {
    sqlite3_vfs vfs;
    sqlite3_vfs *usual;
    _Atomic int write_code;
    _Atomic int sync_code;
    _Atomic int open_code;
    _Atomic bool skipping_sleeps;
    _Atomic int64_t skipped_us;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* one of the following */
    bool holding;
    bool stepping; /* one held sync may return */
    unsigned held; /* syncs that wait */
} layer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

void test_vfs_fail_writes(int code)
{
    layer.write_code = code;
}

void test_vfs_fail_syncs(int code)
{
    layer.sync_code = code;
}

void test_vfs_fail_opens(int code)
{
    layer.open_code = code;
}

void test_vfs_skip_sleeps(bool skip)
{
    layer.skipping_sleeps = skip;
    layer.skipped_us = 0;
}

int64_t test_vfs_skipped_us(void)
{
    return layer.skipped_us;
}

void test_vfs_hold_syncs(bool hold)
{
    pthread_mutex_lock(&layer.mutex);
    layer.holding = hold;
    pthread_cond_broadcast(&layer.changed);
    pthread_mutex_unlock(&layer.mutex);
}

static bool await_held_sync(bool step)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += TEST_VFS_PATIENCE_SECONDS;
    pthread_mutex_lock(&layer.mutex);
    layer.stepping = step;
    pthread_cond_broadcast(&layer.changed);
    while (layer.stepping || !layer.held)
        if (pthread_cond_timedwait(&layer.changed, &layer.mutex, &limit) != 0)
            break;
    bool held = !layer.stepping && layer.held > 0;
    pthread_mutex_unlock(&layer.mutex);
    return held;
}

bool test_vfs_await_held_sync(void)
{
    return await_held_sync(false);
}

bool test_vfs_step_sync(void)
{
    return await_held_sync(true);
}

static sqlite3_file *vfs_inner(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->inner;
}

static int vfs_close(sqlite3_file *file)
{
    return vfs_inner(file)->pMethods->xClose(vfs_inner(file));
}

static int vfs_read(sqlite3_file *file, void *to, int bytes, sqlite3_int64 offset)
{
    return vfs_inner(file)->pMethods->xRead(vfs_inner(file), to, bytes, offset);
}

static int vfs_write(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 offset)
{
    int code = layer.write_code;
    return code ? code : vfs_inner(file)->pMethods->xWrite(vfs_inner(file), from, bytes, offset);
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return vfs_inner(file)->pMethods->xTruncate(vfs_inner(file), size);
}

static int vfs_sync(sqlite3_file *file, int flags)
{
    pthread_mutex_lock(&layer.mutex);
    if (layer.holding) {
        layer.held++;
        pthread_cond_broadcast(&layer.changed);
        while (layer.holding && !layer.stepping)
            pthread_cond_wait(&layer.changed, &layer.mutex);
        layer.held--;
        layer.stepping = false;
        pthread_cond_broadcast(&layer.changed);
    }
    pthread_mutex_unlock(&layer.mutex);
    int code = layer.sync_code;
    return code ? code : vfs_inner(file)->pMethods->xSync(vfs_inner(file), flags);
}

static int vfs_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return vfs_inner(file)->pMethods->xFileSize(vfs_inner(file), size);
}

static int vfs_lock(sqlite3_file *file, int level)
{
    return vfs_inner(file)->pMethods->xLock(vfs_inner(file), level);
}

static int vfs_unlock(sqlite3_file *file, int level)
{
    return vfs_inner(file)->pMethods->xUnlock(vfs_inner(file), level);
}

static int vfs_check_reserved_lock(sqlite3_file *file, int *reserved)
{
    return vfs_inner(file)->pMethods->xCheckReservedLock(vfs_inner(file), reserved);
}

static int vfs_control(sqlite3_file *file, int operation, void *arg)
{
    return vfs_inner(file)->pMethods->xFileControl(vfs_inner(file), operation, arg);
}

static int vfs_sector_size(sqlite3_file *file)
{
    return vfs_inner(file)->pMethods->xSectorSize(vfs_inner(file));
}

static int vfs_characteristics(sqlite3_file *file)
{
    return vfs_inner(file)->pMethods->xDeviceCharacteristics(vfs_inner(file));
}

static int vfs_shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **memory)
{
    return vfs_inner(file)->pMethods->xShmMap(vfs_inner(file), page, bytes, extend, memory);
}

static int vfs_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return vfs_inner(file)->pMethods->xShmLock(vfs_inner(file), offset, count, flags);
}

static void vfs_shm_barrier(sqlite3_file *file)
{
    vfs_inner(file)->pMethods->xShmBarrier(vfs_inner(file));
}

static int vfs_shm_unmap(sqlite3_file *file, int delete)
{
    return vfs_inner(file)->pMethods->xShmUnmap(vfs_inner(file), delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = vfs_close,
    .xRead = vfs_read,
    .xWrite = vfs_write,
    .xTruncate = vfs_truncate,
    .xSync = vfs_sync,
    .xFileSize = vfs_file_size,
    .xLock = vfs_lock,
    .xUnlock = vfs_unlock,
    .xCheckReservedLock = vfs_check_reserved_lock,
    .xFileControl = vfs_control,
    .xSectorSize = vfs_sector_size,
    .xDeviceCharacteristics = vfs_characteristics,
    .xShmMap = vfs_shm_map,
    .xShmLock = vfs_shm_lock,
    .xShmBarrier = vfs_shm_barrier,
    .xShmUnmap = vfs_shm_unmap,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *out_flags)
{
    struct faulty_file *self = (struct faulty_file *)file;
    (void)vfs;
    self->base.pMethods = NULL;
    if (layer.open_code)
        return layer.open_code;
    self->inner = (sqlite3_file *)(self + 1);
    int code = layer.usual->xOpen(layer.usual, name, self->inner, flags, out_flags);
    if (code == SQLITE_OK)
        self->base.pMethods = &methods;
    return code;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    if (!layer.skipping_sleeps)
        return layer.usual->xSleep(layer.usual, microseconds);
    layer.skipped_us += microseconds;
    return microseconds;
}

void test_vfs_register(void)
{
    if (layer.usual)
        return;
    layer.usual = sqlite3_vfs_find(NULL);
    layer.vfs = *layer.usual;
    layer.vfs.zName = TEST_VFS_NAME;
    layer.vfs.szOsFile = (int)sizeof(struct faulty_file) + layer.usual->szOsFile;
    layer.vfs.xOpen = vfs_open;
    layer.vfs.xSleep = vfs_sleep;
    sqlite3_vfs_register(&layer.vfs, 0);
}
