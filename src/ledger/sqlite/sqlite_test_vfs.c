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
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* `holding` or `held` */
    bool holding;
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

void test_vfs_hold_syncs(bool hold)
{
    pthread_mutex_lock(&layer.mutex);
    layer.holding = hold;
    pthread_cond_broadcast(&layer.changed);
    pthread_mutex_unlock(&layer.mutex);
}

bool test_vfs_await_held_sync(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += TEST_VFS_PATIENCE_SECONDS;
    pthread_mutex_lock(&layer.mutex);
    while (!layer.held)
        if (pthread_cond_timedwait(&layer.changed, &layer.mutex, &limit) != 0)
            break;
    bool held = layer.held > 0;
    pthread_mutex_unlock(&layer.mutex);
    return held;
}

static sqlite3_file *inner(sqlite3_file *file)
{
    return ((struct faulty_file *)file)->inner;
}

static int close_file(sqlite3_file *file)
{
    return inner(file)->pMethods->xClose(inner(file));
}

static int read_file(sqlite3_file *file, void *to, int bytes, sqlite3_int64 offset)
{
    return inner(file)->pMethods->xRead(inner(file), to, bytes, offset);
}

static int write_file(sqlite3_file *file, const void *from, int bytes, sqlite3_int64 offset)
{
    int code = layer.write_code;
    return code ? code : inner(file)->pMethods->xWrite(inner(file), from, bytes, offset);
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
    return inner(file)->pMethods->xTruncate(inner(file), size);
}

static int sync_file(sqlite3_file *file, int flags)
{
    pthread_mutex_lock(&layer.mutex);
    if (layer.holding) {
        layer.held++;
        pthread_cond_broadcast(&layer.changed);
        while (layer.holding)
            pthread_cond_wait(&layer.changed, &layer.mutex);
        layer.held--;
    }
    pthread_mutex_unlock(&layer.mutex);
    int code = layer.sync_code;
    return code ? code : inner(file)->pMethods->xSync(inner(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return inner(file)->pMethods->xFileSize(inner(file), size);
}

static int lock_file(sqlite3_file *file, int level)
{
    return inner(file)->pMethods->xLock(inner(file), level);
}

static int unlock_file(sqlite3_file *file, int level)
{
    return inner(file)->pMethods->xUnlock(inner(file), level);
}

static int check_reserved_lock(sqlite3_file *file, int *reserved)
{
    return inner(file)->pMethods->xCheckReservedLock(inner(file), reserved);
}

static int file_control(sqlite3_file *file, int operation, void *arg)
{
    return inner(file)->pMethods->xFileControl(inner(file), operation, arg);
}

static int sector_size(sqlite3_file *file)
{
    return inner(file)->pMethods->xSectorSize(inner(file));
}

static int characteristics(sqlite3_file *file)
{
    return inner(file)->pMethods->xDeviceCharacteristics(inner(file));
}

static int shm_map(sqlite3_file *file, int page, int bytes, int extend, void volatile **memory)
{
    return inner(file)->pMethods->xShmMap(inner(file), page, bytes, extend, memory);
}

static int shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return inner(file)->pMethods->xShmLock(inner(file), offset, count, flags);
}

static void shm_barrier(sqlite3_file *file)
{
    inner(file)->pMethods->xShmBarrier(inner(file));
}

static int shm_unmap(sqlite3_file *file, int delete)
{
    return inner(file)->pMethods->xShmUnmap(inner(file), delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = close_file,
    .xRead = read_file,
    .xWrite = write_file,
    .xTruncate = truncate_file,
    .xSync = sync_file,
    .xFileSize = file_size,
    .xLock = lock_file,
    .xUnlock = unlock_file,
    .xCheckReservedLock = check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = sector_size,
    .xDeviceCharacteristics = characteristics,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
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

void test_vfs_register(void)
{
    if (layer.usual)
        return;
    layer.usual = sqlite3_vfs_find(NULL);
    layer.vfs = *layer.usual;
    layer.vfs.zName = TEST_VFS_NAME;
    layer.vfs.szOsFile = (int)sizeof(struct faulty_file) + layer.usual->szOsFile;
    layer.vfs.xOpen = open_file;
    sqlite3_vfs_register(&layer.vfs, 0);
}
