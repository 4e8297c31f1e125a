/* Locks between the connections of one machine, and the shared memory of write-ahead logs. */
#include "disk/disk_internal.h"

#include <string.h>

int disk_take_lock(sqlite3_file *handle, int level)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    struct disk_file *file = self->file;
    if (self->is_dead)
        return SQLITE_IOERR_LOCK;
    if (file->exclusive && file->exclusive != self)
        return SQLITE_BUSY;
    if (level >= SQLITE_LOCK_RESERVED && file->reserved && file->reserved != self)
        return SQLITE_BUSY;
    if (level == SQLITE_LOCK_EXCLUSIVE && file->shared > (self->lock >= SQLITE_LOCK_SHARED))
        return SQLITE_BUSY;
    if (level >= SQLITE_LOCK_SHARED && self->lock < SQLITE_LOCK_SHARED)
        file->shared++;
    if (level >= SQLITE_LOCK_RESERVED)
        file->reserved = self;
    if (level == SQLITE_LOCK_EXCLUSIVE)
        file->exclusive = self;
    if (level > self->lock)
        self->lock = level;
    return SQLITE_OK;
}

int disk_lower_lock(sqlite3_file *handle, int level)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    struct disk_file *file = self->file;
    if (self->is_dead)
        return SQLITE_OK;
    if (file->exclusive == self && level < SQLITE_LOCK_EXCLUSIVE)
        file->exclusive = NULL;
    if (file->reserved == self && level < SQLITE_LOCK_RESERVED)
        file->reserved = NULL;
    if (self->lock >= SQLITE_LOCK_SHARED && level < SQLITE_LOCK_SHARED)
        file->shared--;
    self->lock = level;
    return SQLITE_OK;
}

int disk_check_reserved(sqlite3_file *handle, int *out)
{
    *out = ((struct disk_handle *)handle)->file->reserved != NULL;
    return SQLITE_OK;
}

void disk_unlock(struct disk_handle *handle)
{
    disk_lower_lock(&handle->base, SQLITE_LOCK_NONE);
}

/* ---- shared memory ---- */

int disk_map_region(sqlite3_file *handle, int region, int bytes, int extend, void volatile **out)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    struct disk_file *file = self->file;
    *out = NULL;
    if (self->is_dead || region >= DISK_REGIONS_MAX)
        return SQLITE_IOERR_SHMMAP;
    if (!self->uses_regions) {
        self->uses_regions = true;
        file->region_users++;
    }
    if (!file->regions[region] && extend)
        file->regions[region] = kernel_alloc((size_t)bytes);
    *out = file->regions[region];
    return SQLITE_OK;
}

static bool disk_region_is_free(const struct disk_handle *self, int slot, bool shared)
{
    const struct disk_file *file = self->file;
    bool own = self->region_shared >> slot & 1;
    if (file->region_exclusive[slot] && file->region_exclusive[slot] != self)
        return false;
    return shared || file->region_shared[slot] == (own ? 1U : 0U);
}

static void disk_take_region(struct disk_handle *self, int slot, bool shared)
{
    struct disk_file *file = self->file;
    if (!shared) {
        file->region_exclusive[slot] = self;
    } else if (!(self->region_shared >> slot & 1)) {
        self->region_shared |= 1U << slot;
        file->region_shared[slot]++;
    }
}

static void disk_give_region(struct disk_handle *self, int slot)
{
    struct disk_file *file = self->file;
    if (file->region_exclusive[slot] == self)
        file->region_exclusive[slot] = NULL;
    if (self->region_shared >> slot & 1) {
        self->region_shared &= ~(1U << slot);
        file->region_shared[slot]--;
    }
}

int disk_lock_region(sqlite3_file *handle, int offset, int count, int flags)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    bool shared = flags & SQLITE_SHM_SHARED;
    if (self->is_dead)
        return flags & SQLITE_SHM_UNLOCK ? SQLITE_OK : SQLITE_IOERR_SHMLOCK;
    for (int slot = offset; slot < offset + count; slot++)
        if ((flags & SQLITE_SHM_LOCK) && !disk_region_is_free(self, slot, shared))
            return SQLITE_BUSY;
    for (int slot = offset; slot < offset + count; slot++) {
        if (flags & SQLITE_SHM_LOCK)
            disk_take_region(self, slot, shared);
        else
            disk_give_region(self, slot);
    }
    return SQLITE_OK;
}

void disk_region_barrier(sqlite3_file *handle)
{
    (void)handle;
}

void disk_free_regions(struct disk_file *file)
{
    for (size_t i = 0; i < DISK_REGIONS_MAX; i++) {
        kernel_free(file->regions[i]);
        file->regions[i] = NULL;
    }
}

void disk_leave_regions(struct disk_handle *self)
{
    if (!self->uses_regions)
        return;
    self->uses_regions = false;
    for (int slot = 0; slot < SQLITE_SHM_NLOCK; slot++)
        disk_give_region(self, slot);
    if (--self->file->region_users == 0) /* the next user rebuilds it from the log */
        disk_free_regions(self->file);
}

int disk_unmap_regions(sqlite3_file *handle, int remove)
{
    struct disk_handle *self = (struct disk_handle *)handle;
    (void)remove;
    if (!self->is_dead)
        disk_leave_regions(self);
    return SQLITE_OK;
}
