/* The default memory limit, from the cgroup or the machine. */
#include "app/gateway/memory_pressure.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES_MAX = 128 };

/* cgroup v1 shows no limit as a number near the largest. */
#define NO_LIMIT_BYTES (UINT64_C(1) << 60)

/* Reads the number in a file of one line; 0: there is none, or no limit. */
static uint64_t read_limit_file(const char *path)
{
    char line[LINE_BYTES_MAX];
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    uint64_t bytes = fgets(line, sizeof(line), file) ? strtoull(line, NULL, 10) : 0;
    fclose(file);
    return bytes < NO_LIMIT_BYTES ? bytes : 0;
}

static uint64_t lower_limit(uint64_t one, uint64_t other)
{
    return one == 0 || (other != 0 && other < one) ? other : one;
}

/* The lowest limit of a cgroup and the groups around it: each may be limited. `path` is changed. */
static uint64_t read_group_limits(const char *root, const char *controller, char *path,
                                  const char *file)
{
    uint64_t limit = 0;
    char name[PATH_MAX];
    for (;;) {
        snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s%s/%s", root, controller, path, file);
        limit = lower_limit(limit, read_limit_file(name));
        char *slash = strrchr(path, '/');
        if (!slash)
            return limit;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup is "0::/path" for version 2, "7:memory:/path" for version 1. In a container the path may
 * be that of the host; then the group at the root of the mounted hierarchy is the container's own. */
static uint64_t read_cgroup_limit(const char *root)
{
    char name[PATH_MAX], line[PATH_MAX];
    uint64_t limit = 0;
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    while (file && fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (controllers[1] == '\0')
            limit = lower_limit(limit, read_group_limits(root, "", path, "memory.max"));
        else if (strcmp(controllers + 1, "memory") == 0)
            limit = lower_limit(limit,
                                read_group_limits(root, "/memory", path, "memory.limit_in_bytes"));
    }
    if (file)
        fclose(file);
    return limit;
}

static uint64_t read_machine_memory(const char *root)
{
    static const char LABEL[] = "MemTotal:";
    char name[PATH_MAX], line[LINE_BYTES_MAX];
    uint64_t kilobytes = 0;
    snprintf(name, sizeof(name), "%s/proc/meminfo", root);
    FILE *file = fopen(name, "re");
    if (!file)
        return 0;
    if (fgets(line, sizeof(line), file) && strncmp(line, LABEL, sizeof(LABEL) - 1) == 0)
        kilobytes = strtoull(line + sizeof(LABEL) - 1, NULL, 10);
    fclose(file);
    return kilobytes * 1024;
}

size_t memory_pressure_default_limit(const char *root)
{
    return (size_t)(lower_limit(read_machine_memory(root), read_cgroup_limit(root)) / 4 * 3);
}
