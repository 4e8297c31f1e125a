#include "app/gateway/memory_pressure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char root[64];

static void write_file(const char *path, const char *text)
{
    char name[512];
    snprintf(name, sizeof(name), "%s%s", root, path);
    for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(name, 0700);
        *slash = '/';
    }
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/memory-limit-XXXXXX");
    assert_non_null(mkdtemp(root));
    write_file("/proc/meminfo", "MemTotal:        4000 kB\nMemFree: 7 kB\n");
    return 0;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", root);
    return system(command);
}

static void machine_counts_without_a_cgroup(void **unused)
{
    (void)unused;
    assert_int_equal(memory_pressure_default_limit(root), 4000 * 1024 / 4 * 3);
    write_file("/proc/self/cgroup", "0::/user.slice\n");
    write_file("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    assert_int_equal(memory_pressure_default_limit(root), 4000 * 1024 / 4 * 3);
}

static void lowest_limit_of_nested_groups_counts(void **unused)
{
    (void)unused;
    write_file("/proc/self/cgroup", "0::/a/b\n");
    write_file("/sys/fs/cgroup/a/b/memory.max", "3000000\n");
    assert_int_equal(memory_pressure_default_limit(root), 2250000);
    write_file("/sys/fs/cgroup/a/memory.max", "1000000\n");
    assert_int_equal(memory_pressure_default_limit(root), 750000);
}

static void container_has_its_group_at_the_root(void **unused)
{
    (void)unused;
    write_file("/proc/self/cgroup", "0::/\n");
    write_file("/sys/fs/cgroup/memory.max", "2000000\n");
    assert_int_equal(memory_pressure_default_limit(root), 1500000);
}

static void version_1_is_read_too(void **unused)
{
    (void)unused;
    write_file("/proc/self/cgroup", "4:cpu:/x\n7:memory:/docker/abc\n");
    write_file("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "2000000\n");
    write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(memory_pressure_default_limit(root), 1500000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(machine_counts_without_a_cgroup),
        TEST(lowest_limit_of_nested_groups_counts),
        TEST(container_has_its_group_at_the_root),
        TEST(version_1_is_read_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
