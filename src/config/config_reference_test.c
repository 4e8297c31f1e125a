/* Tests that docs/CONFIGURATION.md agrees with the table. To renew it:
 * rollcall serve --config-reference > docs/CONFIGURATION.md */
#include "config/config.h"

#include "base/buffer.h"
#include "config/setting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE "docs/CONFIGURATION.md"

/* The test may run in the root of the source tree or in a build directory. */
static FILE *open_page(void)
{
    char path[4096];
    const char *below_src = strstr(__FILE__, "src/config/");
    FILE *file = fopen(PAGE, "r");
    if (file || !below_src)
        return file;
    snprintf(path, sizeof(path), "%.*s" PAGE, (int)(below_src - __FILE__), __FILE__);
    return fopen(path, "r");
}

static void generate(char **text)
{
    size_t len = 0;
    FILE *out = open_memstream(text, &len);
    assert_non_null(out);
    config_write_reference(out);
    assert_int_equal(fclose(out), 0);
}

static void configuration_page_is_up_to_date(void **state)
{
    (void)state;
    struct buffer page = BUFFER_INIT;
    char *text = NULL;
    generate(&text);
    FILE *file = open_page();
    assert_non_null(file);
    for (int c = getc(file); c != EOF; c = getc(file))
        buffer_append_byte(&page, (char)c);
    fclose(file);
    assert_true(slice_is(buffer_slice(&page), text));
    buffer_free(&page);
    free(text);
}

static void configuration_page_names_every_setting_once(void **state)
{
    (void)state;
    char *text = NULL;
    generate(&text);
    for (size_t i = 0; i < setting_count(); i++) {
        char cell[128];
        snprintf(cell, sizeof(cell), "\n| `%s` |", setting_at(i)->name);
        char *row = strstr(text, cell);
        if (!row || strstr(row + 1, cell))
            fail_msg("%s", setting_at(i)->name);
        assert_non_null(strstr(row, setting_at(i)->help));
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configuration_page_is_up_to_date),
        cmocka_unit_test(configuration_page_names_every_setting_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
