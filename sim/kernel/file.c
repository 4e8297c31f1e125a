#include "kernel/file.h"

#include "base/container.h"
#include "kernel/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char ROOT[] = "/sim/";

enum { PATH_BYTES = 128 };

struct file {
    struct list place;
    char path[PATH_BYTES];
    char *data;
    size_t bytes;
    struct file_descriptor *holder; /* of its lock */
};

struct file_descriptor {
    struct descriptor base;
    struct file *file;
    size_t at;
};

static struct file *file_find(struct machine *machine, const char *path, bool create)
{
    for (struct list *at = machine->files.next; at != &machine->files; at = at->next) {
        struct file *file = CONTAINER_OF(at, struct file, place);
        if (strcmp(file->path, path) == 0)
            return file;
    }
    if (!create)
        return NULL;
    struct file *file = kernel_alloc(sizeof(*file));
    snprintf(file->path, sizeof(file->path), "%s", path);
    list_append(&machine->files, &file->place);
    return file;
}

static void file_put(struct file *file, size_t at, const void *data, size_t bytes)
{
    if (at + bytes > file->bytes) {
        file->data = kernel_realloc(file->data, at + bytes);
        file->bytes = at + bytes;
    }
    if (bytes > 0)
        memcpy(file->data + at, data, bytes);
}

static size_t file_get(const struct file *file, size_t at, void *data, size_t bytes)
{
    size_t left = at < file->bytes ? file->bytes - at : 0;
    size_t got = left < bytes ? left : bytes;
    if (got > 0)
        memcpy(data, file->data + at, got);
    return got;
}

void file_write(struct machine *machine, const char *path, struct slice content)
{
    struct file *file = file_find(machine, path, true);
    file->bytes = 0;
    file_put(file, 0, content.data, content.len);
}

void file_remove_all(struct machine *machine)
{
    while (!list_empty(&machine->files)) {
        struct file *file = CONTAINER_OF(machine->files.next, struct file, place);
        list_remove(&file->place);
        kernel_free(file->data);
        kernel_free(file);
    }
}

/* ---- descriptors ---- */

static ssize_t file_read_on(struct descriptor *descriptor, void *data, size_t bytes)
{
    struct file_descriptor *self = (struct file_descriptor *)descriptor;
    size_t got = file_get(self->file, self->at, data, bytes);
    self->at += got;
    return (ssize_t)got;
}

static void file_close(struct descriptor *descriptor)
{
    struct file_descriptor *self = (struct file_descriptor *)descriptor;
    if (self->file->holder == self)
        self->file->holder = NULL;
    kernel_free(self);
}

static const struct descriptor_kind FILE_KIND = {.read = file_read_on, .close = file_close};

static struct file_descriptor *file_descriptor_find(int fd)
{
    return (struct file_descriptor *)descriptor_find(fd);
}

/* ---- the calls ---- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_flock(int fd, int operation);
int __wrap_ftruncate64(int fd, off_t bytes);
ssize_t __wrap_pread64(int fd, void *data, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t at);
int __real_fstat64(int fd, struct stat *out);
int __wrap_fstat64(int fd, struct stat *out);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);

int __wrap_open64(const char *path, int flags, ...)
{
    if (strncmp(path, ROOT, sizeof(ROOT) - 1) != 0)
        return __real_open64(path, flags & ~O_CREAT);
    struct file *file = file_find(kernel_process()->machine, path, flags & O_CREAT);
    if (!file) {
        errno = ENOENT;
        return -1;
    }
    struct file_descriptor *self = kernel_alloc(sizeof(*self));
    self->file = file;
    return descriptor_open(&self->base, &FILE_KIND);
}

int __wrap_flock(int fd, int operation)
{
    struct file_descriptor *self = file_descriptor_find(fd);
    (void)operation;
    if (!self)
        return -1;
    if (self->file->holder && self->file->holder != self) {
        errno = EWOULDBLOCK;
        return -1;
    }
    self->file->holder = self;
    return 0;
}

int __wrap_ftruncate64(int fd, off_t bytes)
{
    struct file_descriptor *self = file_descriptor_find(fd);
    if (self && (size_t)bytes < self->file->bytes)
        self->file->bytes = (size_t)bytes;
    return self ? 0 : -1;
}

ssize_t __wrap_pread64(int fd, void *data, size_t bytes, off_t at)
{
    struct file_descriptor *self = file_descriptor_find(fd);
    return self ? (ssize_t)file_get(self->file, (size_t)at, data, bytes) : -1;
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t bytes, off_t at)
{
    struct file_descriptor *self = file_descriptor_find(fd);
    if (!self)
        return -1;
    file_put(self->file, (size_t)at, data, bytes);
    return (ssize_t)bytes;
}

int __wrap_fstat64(int fd, struct stat *out)
{
    if (fd < DESCRIPTOR_FIRST)
        return __real_fstat64(fd, out);
    struct file_descriptor *self = file_descriptor_find(fd);
    if (!self)
        return -1;
    *out = (struct stat){.st_mode = S_IFREG | 0600, .st_size = (off_t)self->file->bytes};
    return 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return strncmp(path, ROOT, sizeof(ROOT) - 1) == 0 ? 0 : __real_mkdir(path, mode);
}
