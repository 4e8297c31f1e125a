#include "text/utf8.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct sample {
    struct slice text;
    size_t refused_at; /* how many bytes are accepted before the refused one */
};

static const struct slice valid[] = {
    SLICE(""),
    SLICE("plain ascii, longer than eight bytes"),
    SLICE("\0 is a character too"),
    SLICE("\x7f"),
    SLICE("\xc2\x80"),
    SLICE("\xdf\xbf"),
    SLICE("\xe0\xa0\x80"),
    SLICE("\xed\x9f\xbf"),
    SLICE("\xee\x80\x80"),
    SLICE("\xef\xbf\xbf"),
    SLICE("\xf0\x90\x80\x80"),
    SLICE("\xf4\x8f\xbf\xbf"),
    SLICE("12345678\xe2\x82\xac"
          "12345678\xf0\x9f\x98\x80"),
};

static const struct sample invalid[] = {
    {SLICE("\x80"), 0},             /* continuation alone */
    {SLICE("\xc0\x80"), 0},         /* overlong NUL */
    {SLICE("\xc1\xbf"), 0},         /* overlong */
    {SLICE("\xe0\x9f\xbf"), 1},     /* overlong */
    {SLICE("\xf0\x8f\xbf\xbf"), 1}, /* overlong */
    {SLICE("\xed\xa0\x80"), 1},     /* surrogate */
    {SLICE("\xed\xbf\xbf"), 1},     /* surrogate */
    {SLICE("\xf4\x90\x80\x80"), 1}, /* above U+10FFFF */
    {SLICE("\xf5\x80\x80\x80"), 0}, /* above U+10FFFF */
    {SLICE("\xff"), 0},
    {SLICE("\xe2\x82 "), 2},        /* cut short by ascii */
    {SLICE("\xf0\x9f\x98\xf0"), 3}, /* cut short by a lead */
    {SLICE("12345678abc\x80 12345678"), 11},
    {SLICE("12345678abc\xff"), 11},
};

static bool is_valid(struct slice text)
{
    char *copy = exact_copy(text);
    bool accepted = utf8_valid((struct slice){copy, text.len});
    free(copy);
    return accepted;
}

static bool add_copy(struct utf8 *utf8, const char *data, size_t len)
{
    char *copy = exact_copy((struct slice){data, len});
    bool accepted = utf8_add(utf8, copy, len);
    free(copy);
    return accepted;
}

static void valid_text_is_accepted(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++)
        assert_true(is_valid(valid[i]));
}

static void refusal_comes_at_the_earliest_byte(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        const struct sample *sample = &invalid[i];
        struct utf8 utf8 = UTF8_INIT;
        assert_false(is_valid(sample->text));
        assert_true(add_copy(&utf8, sample->text.data, sample->refused_at));
        assert_false(add_copy(&utf8, sample->text.data + sample->refused_at, 1));
    }
}

static void refusal_is_final(void **unused)
{
    (void)unused;
    struct utf8 utf8 = UTF8_INIT;
    assert_false(utf8_add(&utf8, "\xff", 1));
    assert_false(utf8_add(&utf8, "", 0));
    assert_false(utf8_add(&utf8, "a", 1));
    assert_false(utf8_add(&utf8, "\xff", 1));
    assert_false(utf8_complete(&utf8));
}

static void result_does_not_depend_on_the_split(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        for (size_t cut = 0; cut <= valid[i].len; cut++) {
            struct utf8 utf8 = UTF8_INIT;
            assert_true(add_copy(&utf8, valid[i].data, cut));
            assert_true(add_copy(&utf8, valid[i].data + cut, valid[i].len - cut));
            assert_true(utf8_complete(&utf8));
        }
    }
}

static void text_cut_inside_a_character_is_not_complete(void **unused)
{
    (void)unused;
    const struct slice face = SLICE("\xf0\x9f\x98\x80");
    for (size_t cut = 1; cut < face.len; cut++)
        assert_false(is_valid(slice_first(face, cut)));
}

/* A bad byte at each offset, so that every byte of the word-wise path is tested. */
static void bad_byte_is_detected_at_every_offset(void **unused)
{
    (void)unused;
    char text[40];
    for (size_t len = 1; len <= sizeof text; len++) {
        for (size_t at = 0; at < len; at++) {
            memset(text, 'a', sizeof text);
            assert_true(utf8_valid((struct slice){text, len}));
            text[at] = (char)0x80;
            assert_false(utf8_valid((struct slice){text, len}));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_is_accepted),
        cmocka_unit_test(refusal_comes_at_the_earliest_byte),
        cmocka_unit_test(refusal_is_final),
        cmocka_unit_test(result_does_not_depend_on_the_split),
        cmocka_unit_test(text_cut_inside_a_character_is_not_complete),
        cmocka_unit_test(bad_byte_is_detected_at_every_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
