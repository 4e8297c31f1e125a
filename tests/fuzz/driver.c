/*
 * Runs a fuzz target without libFuzzer: every file of a corpus, then mutations of it from a fixed seed, so
 * that every run is the same. It finds less than coverage-guided fuzzing, but needs only a C compiler and a
 * few seconds.
 *
 *     fuzz_http1 [-n mutations-per-file] corpus-folder...
 */
#include "fuzz.h"

#include <dirent.h>
#include <string.h>

#define INPUT_BYTES_MAX 65536
#define MUTATIONS_DEFAULT 2000
#define EDITS_MAX 8

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns a byte that is often significant to codecs. */
static uint8_t significant_byte(uint64_t chance)
{
    static const uint8_t bytes[] = {0x00, 0x01, '\t', '\n', '\r', ' ',  '"',  '%',  ',',  ':',
                                    ';',  '\\', '{',  0x7e, 0x7f, 0x80, 0x81, 0x88, 0x89, 0xbf,
                                    0xc0, 0xc2, 0xe0, 0xed, 0xf0, 0xf4, 0xfe, 0xff};
    return bytes[chance % sizeof bytes];
}

/* Inserts a copy of `count` bytes of the input at another offset. */
static size_t repeat_bytes(uint8_t *data, size_t size, size_t from, size_t to, size_t count)
{
    uint8_t piece[16];
    if (from + count > size || size + count > INPUT_BYTES_MAX)
        return size;
    memcpy(piece, data + from, count);
    memmove(data + to + count, data + to, size - to);
    memcpy(data + to, piece, count);
    return size + count;
}

static size_t mutate_once(uint8_t *data, size_t size, uint64_t *state)
{
    uint64_t chance = random_next(state);
    size_t at = size ? random_next(state) % size : 0;
    if (size == 0)
        return 0;
    switch (chance % 6) {
    case 0:
        data[at] ^= (uint8_t)(1u << (chance >> 8 & 7));
        return size;
    case 1:
        data[at] = (uint8_t)(chance >> 8);
        return size;
    case 2:
        data[at] = significant_byte(chance >> 8);
        return size;
    case 3:
        memmove(data + at, data + at + 1, size - at - 1);
        return size - 1;
    case 4:
        return chance >> 8 & 3 ? size : at;
    default:
        return repeat_bytes(data, size, at, random_next(state) % size, 1 + (chance >> 8) % 16);
    }
}

static void run_input(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size);
    LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
    free(copy);
}

static bool run_file(const char *path, unsigned long mutations)
{
    static uint8_t original[INPUT_BYTES_MAX];
    static uint8_t mutant[INPUT_BYTES_MAX];
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    size_t size = fread(original, 1, sizeof original, file);
    fclose(file);
    run_input(original, size);
    for (unsigned long i = 0; i < mutations; i++) {
        size_t mutant_size = size;
        memcpy(mutant, original, size);
        for (uint64_t edits = 1 + random_next(&state) % EDITS_MAX; edits > 0; edits--)
            mutant_size = mutate_once(mutant, mutant_size, &state);
        run_input(mutant, mutant_size);
    }
    return true;
}

/* Returns false if no file was run: a test that ran nothing has not passed. */
static bool run_folder(const char *path, unsigned long mutations)
{
    size_t files = 0;
    struct dirent *entry;
    DIR *folder = opendir(path);
    if (!folder) {
        perror(path);
        return false;
    }
    while ((entry = readdir(folder))) {
        char name[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        files += run_file(name, mutations);
    }
    closedir(folder);
    printf("%s: %zu files, %lu mutations of each\n", path, files, mutations);
    return files > 0;
}

int main(int argc, char **argv)
{
    unsigned long mutations = MUTATIONS_DEFAULT;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "-n") == 0) {
        mutations = strtoul(argv[2], NULL, 10);
        first = 3;
    }
    bool passed = first < argc;
    for (int i = first; i < argc; i++)
        passed &= run_folder(argv[i], mutations);
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
