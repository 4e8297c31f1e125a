/* For tests of the SQLite ledger: a path in a directory of its own, removed with all it holds. */
#ifndef ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_FILE_H
#define ROLLCALL_LEDGER_SQLITE_SQLITE_TEST_FILE_H

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEST_FILE_PATH_BYTES = 256 };

struct test_file {
    char directory[TEST_FILE_PATH_BYTES];
    char path[TEST_FILE_PATH_BYTES + 16];
};

static inline void test_file_make(struct test_file *file)
{
    const char *parent = getenv("TMPDIR");
    snprintf(file->directory, sizeof(file->directory), "%s/rollcall-ledger-XXXXXX",
             parent ? parent : "/tmp");
    const char *made = mkdtemp(file->directory);
    assert(made);
    (void)made;
    snprintf(file->path, sizeof(file->path), "%s/ledger.db", file->directory);
}

static inline void test_file_remove(const struct test_file *file)
{
    static const char *const endings[] = {"", "-wal", "-shm", ".lock"};
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        char name[sizeof(file->path) + 8];
        snprintf(name, sizeof(name), "%s%s", file->path, endings[i]);
        unlink(name);
    }
    rmdir(file->directory);
}

#endif
