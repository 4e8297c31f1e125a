/* The calls that belong to no other file: time, chance, and those on any descriptor. */
#include "kernel/descriptor.h"
#include "world/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags);
ssize_t __real_read(int fd, void *data, size_t bytes);
ssize_t __wrap_read(int fd, void *data, size_t bytes);
ssize_t __real_write(int fd, const void *data, size_t bytes);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
    const struct process *process = kernel_process();
    if (!process)
        return __real_clock_gettime(id, out);
    int64_t us = id == CLOCK_REALTIME ? machine_wall_us(process->machine)
                                      : machine_monotonic_us(process->machine);
    *out = (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    return 0;
}

/* The simulator itself never asks: what it drew from the system would make each run of a seed another one. */
ssize_t __wrap_getrandom(void *data, size_t bytes, unsigned flags)
{
    struct process *process = kernel_process();
    (void)flags;
    if (!process)
        abort();
    random_bytes(&process->random, data, bytes);
    return (ssize_t)bytes;
}

ssize_t __wrap_read(int fd, void *data, size_t bytes)
{
    if (fd < DESCRIPTOR_FIRST)
        return __real_read(fd, data, bytes);
    struct descriptor *descriptor = descriptor_find(fd);
    return descriptor ? descriptor->kind->read(descriptor, data, bytes) : -1;
}

/* The log of a process becomes part of the trace. */
ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    const struct process *process = kernel_process();
    if (fd == STDERR_FILENO && process) {
        trace_log(process->name, (struct slice){data, bytes});
        return (ssize_t)bytes;
    }
    if (fd < DESCRIPTOR_FIRST)
        return __real_write(fd, data, bytes);
    struct descriptor *descriptor = descriptor_find(fd);
    return descriptor ? descriptor->kind->write(descriptor, data, bytes) : -1;
}

int __wrap_close(int fd)
{
    if (fd < DESCRIPTOR_FIRST)
        return __real_close(fd);
    struct descriptor *descriptor = descriptor_find(fd);
    if (!descriptor)
        return -1;
    descriptor_close(descriptor);
    return 0;
}
