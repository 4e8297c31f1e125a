#include "text/utf8_character.h"

#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void every_code_point_is_written_as_one_character(void **state)
{
    (void)state;
    for (uint32_t point = 0; point <= 0x10ffff; point++) {
        if (point >= 0xd800 && point <= 0xdfff)
            continue;
        char text[UTF8_CHARACTER_MAX];
        size_t len = utf8_character_write(text, point);
        size_t expected = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        assert_int_equal(len, expected);
        assert_int_equal(utf8_character_len(text, sizeof(text)), len);
        assert_int_equal(utf8_character_len(text, len - 1), 0);
        assert_true(utf8_valid((struct slice){text, len}));
    }
}

/* All pairs of bytes, followed by the bounds of continuation bytes. */
static void character_len_agrees_with_the_validator(void **state)
{
    (void)state;
    static const unsigned char edges[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (uint32_t bits = 0; bits < 0x10000 * 36; bits++) {
        char text[UTF8_CHARACTER_MAX] = {(char)(bits >> 8), (char)bits,
                                         (char)edges[(bits >> 16) % 6],
                                         (char)edges[(bits >> 16) / 6]};
        size_t len = utf8_character_len(text, sizeof(text));
        size_t valid = 1;
        while (valid <= sizeof(text) && !utf8_valid((struct slice){text, valid}))
            valid++;
        assert_int_equal(len, valid <= sizeof(text) ? valid : 0);
    }
}

static void replacement_is_a_character(void **state)
{
    (void)state;
    char text[UTF8_CHARACTER_MAX];
    assert_int_equal(utf8_character_write(text, 0xfffd), 3);
    assert_memory_equal(text, UTF8_CHARACTER_REPLACEMENT, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_is_written_as_one_character),
        cmocka_unit_test(character_len_agrees_with_the_validator),
        cmocka_unit_test(replacement_is_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
