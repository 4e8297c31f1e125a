/* Shared by the tests of the configuration: a file to load, and expectations about the result. Each
 * test program works in a directory of its own, where the file is always "rollcall.yaml". */
#ifndef ROLLCALL_CONFIG_CONFIG_TESTING_H
#define ROLLCALL_CONFIG_CONFIG_TESTING_H

#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define CONFIG_TESTING_FILE "rollcall.yaml"

static char config_testing_directory[] = "/tmp/rollcall-config-XXXXXX";

static inline int config_testing_begin(void **state)
{
    (void)state;
    return mkdtemp(config_testing_directory) && chdir(config_testing_directory) == 0 ? 0 : -1;
}

static inline int config_testing_end(void **state)
{
    (void)state;
    unlink(CONFIG_TESTING_FILE);
    return rmdir(config_testing_directory);
}

static inline void config_testing_write_file(const char *yaml)
{
    FILE *file = fopen(CONFIG_TESTING_FILE, "w");
    assert_non_null(file);
    fputs(yaml, file);
    assert_int_equal(fclose(file), 0);
}

static inline void expect_loaded(struct config *config, const struct config_inputs *inputs)
{
    struct config_error error = {""};
    if (!config_load(config, inputs, &error))
        fail_msg("not loaded: %s", error.text);
}

/* Expects loading to fail with exactly this text. */
static inline void expect_refused(const struct config_inputs *inputs, const char *text)
{
    struct config config;
    struct config_error error = {""};
    assert_false(config_load(&config, inputs, &error));
    assert_string_equal(error.text, text);
    assert_null(config.gateway.listen);
}

static inline void expect_file_loaded(struct config *config, const char *yaml)
{
    config_testing_write_file(yaml);
    expect_loaded(config, &(struct config_inputs){.file = CONFIG_TESTING_FILE});
}

static inline void expect_file_refused(const char *yaml, const char *text)
{
    config_testing_write_file(yaml);
    expect_refused(&(struct config_inputs){.file = CONFIG_TESTING_FILE}, text);
}

/* `sets` is terminated by NULL. */
static inline struct config_inputs inputs_of_sets(const char *const *sets)
{
    size_t count = 0;
    while (sets[count])
        count++;
    return (struct config_inputs){.assignments = sets, .assignment_count = count};
}

#define SETS(...) inputs_of_sets((const char *const[]){__VA_ARGS__, NULL})

static inline void expect_sets_loaded(struct config *config, struct config_inputs inputs)
{
    expect_loaded(config, &inputs);
}

static inline void expect_sets_refused(struct config_inputs inputs, const char *text)
{
    expect_refused(&inputs, text);
}

#endif
