/* The lines of an import: found in any pieces, read or refused; the report keeps the first errors. */
#include "api/service/import_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *read_text(const char *text, struct import_line *line)
{
    static char copy[1024];
    strcpy(copy, text);
    return import_line_read(slice_of(copy), line);
}

static void lines_of_every_kind_are_read(void **unused)
{
    (void)unused;
    struct import_line line;
    assert_null(read_text(" {\"contact\" : [\"a\\u0062\",\"c\"]}\r", &line));
    assert_int_equal(line.kind, IMPORT_CONTACT);
    assert_true(slice_is(line.pair[0], "ab") && slice_is(line.pair[1], "c"));
    assert_null(read_text("{\"block\":[\"a\",\"b\"]}", &line));
    assert_int_equal(line.kind, IMPORT_BLOCK);
    assert_null(read_text("{\"user\":{\"user_id\":\"a\"}}", &line));
    assert_int_equal(line.kind, IMPORT_USER);
    assert_true(slice_is(line.object, "{\"user_id\":\"a\"}"));
    assert_null(read_text("{\"chat\":{}}", &line));
    assert_int_equal(line.kind, IMPORT_CHAT);
}

static void other_lines_are_refused(void **unused)
{
    (void)unused;
    static const char *const lines[] = {
        "",
        "x",
        "{}",
        "null",
        "[1]",
        "{\"contact\":[]}",
        "{\"contact\":[\"a\"]}",
        "{\"contact\":[\"a\",\"b\",\"c\"]}",
        "{\"contact\":[\"a\",\"a\"]}",
        "{\"contact\":[\"a\",\"\"]}",
        "{\"contact\":[\"a\",1]}",
        "{\"contact\":\"ab\"}",
        "{\"contact\":[\"a\",\"b\"]} x",
        "{\"contact\":[\"a\",\"b\"],\"x\":1}",
        "{\"user\":[]}",
        "{\"chat\":\"c\"}",
        "{\"other\":[\"a\",\"b\"]}",
    };
    struct import_line line;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        assert_non_null(read_text(lines[i], &line));
}

static void line_that_is_too_long_is_skipped_to_its_end(void **unused)
{
    (void)unused;
    struct import_lines lines;
    struct slice line;
    import_lines_init(&lines, 4);
    import_lines_add(&lines, SLICE("12"));
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_NEED_MORE);
    import_lines_add(&lines, SLICE("345"));
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_TOO_LONG);
    assert_int_equal(lines.line, 1);
    import_lines_add(&lines, SLICE("6789"));
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_NEED_MORE);
    import_lines_add(&lines, SLICE("0\nab\n\nend"));
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_LINE);
    assert_true(slice_is(line, "ab") && lines.line == 2);
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_LINE);
    assert_int_equal(line.len, 0);
    assert_int_equal(import_lines_next(&lines, false, &line), IMPORT_LINES_NEED_MORE);
    assert_int_equal(import_lines_next(&lines, true, &line), IMPORT_LINES_LINE);
    assert_true(slice_is(line, "end") && lines.line == 4);
    assert_int_equal(import_lines_next(&lines, true, &line), IMPORT_LINES_NEED_MORE);
    import_lines_free(&lines);
}

static void report_keeps_the_errors_of_the_first_lines(void **unused)
{
    (void)unused;
    struct import_report report = {0};
    for (uint64_t line = 100; line > 0; line--)
        import_report_error(&report, line, "wrong");
    import_report_error(&report, 1000, "late");
    assert_int_equal(report.error_count, 101);
    for (uint64_t i = 0; i < IMPORT_ERRORS_MAX; i++)
        assert_int_equal(report.errors[i].line, i + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_every_kind_are_read),
        cmocka_unit_test(other_lines_are_refused),
        cmocka_unit_test(line_that_is_too_long_is_skipped_to_its_end),
        cmocka_unit_test(report_keeps_the_errors_of_the_first_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
