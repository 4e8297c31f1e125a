#include "text/base64url.h"

#include "base/random.h"
#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct pair {
    struct slice bytes;
    const char *text;
};

static const struct pair pairs[] = {
    {SLICE(""), ""},
    {SLICE("f"), "Zg"},
    {SLICE("fo"), "Zm8"},
    {SLICE("foo"), "Zm9v"},
    {SLICE("foob"), "Zm9vYg"},
    {SLICE("fooba"), "Zm9vYmE"},
    {SLICE("foobar"), "Zm9vYmFy"},
    {SLICE("\xfb\xff\xbf"), "-_-_"},
    {SLICE("\0\0\0\0"), "AAAAAA"},
    {SLICE("\xff"), "_w"},
    {SLICE("\xff\xff"), "__8"},
};

/* Decodes an exact copy, so that the sanitizer sees a read beyond it. */
static bool decode(struct slice text, unsigned char *out, size_t *len)
{
    char *copy = exact_copy(text);
    bool accepted = base64url_decode((struct slice){copy, text.len}, out, len);
    free(copy);
    return accepted;
}

static void known_pairs_are_encoded_and_decoded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct buffer text = BUFFER_INIT;
        base64url_encode(&text, pairs[i].bytes.data, pairs[i].bytes.len);
        assert_true(slice_is(buffer_slice(&text), pairs[i].text));
        buffer_free(&text);

        unsigned char bytes[16];
        size_t len;
        assert_true(decode(slice_of(pairs[i].text), bytes, &len));
        assert_true(slice_equal((struct slice){(char *)bytes, len}, pairs[i].bytes));
    }
}

static void non_canonical_text_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "A",    "Zg==", "Zg=",  "Zm8=",     "AAAAA",     "Zm9v\n", " Zm9v", "Zm 9v", "Zm+v",
        "Zm/v", "Zh",   "Zv",   "Zm9",      "Zm-",       "Z!",     "!g",    "Zm!",   "Zm9!",
        "!m9v", "Z!9v", "Zm!v", "Zm9v\x80", "Zm9vZ\xff", "Zm9v=",  "....",  "Z@9v",  "Z[9v",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        unsigned char bytes[16];
        size_t len;
        if (decode(slice_of(texts[i]), bytes, &len))
            fail_msg("accepted \"%s\"", texts[i]);
    }
    unsigned char bytes[16];
    size_t len;
    assert_false(decode(SLICE("Zm\0v"), bytes, &len));
}

static void empty_slice_decodes_to_nothing(void **state)
{
    (void)state;
    unsigned char bytes[2];
    size_t len = 7;
    assert_true(base64url_decode(SLICE_NONE, bytes, &len));
    assert_int_equal(len, 0);
}

/* Every text is refused, or decodes to bytes that encode to the same text; base64url_decoded_max() is
 * never exceeded. */
static void valid_text_is_the_encoding_of_its_bytes(void **state)
{
    (void)state;
    static const char mostly_valid[] = "ABCDEFxyz0189-_=+";
    struct random random;
    random_init_seeded(&random, 11);
    unsigned accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[24];
        size_t len = random_below(&random, sizeof(text) + 1);
        for (size_t i = 0; i < len; i++)
            text[i] = mostly_valid[random_below(&random, round % 2 ? 15 : 17)];
        unsigned char bytes[sizeof(text)];
        size_t bytes_len;
        if (!decode((struct slice){text, len}, bytes, &bytes_len))
            continue;
        accepted++;
        assert_true(bytes_len <= base64url_decoded_max(len));
        struct buffer again = BUFFER_INIT;
        base64url_encode(&again, bytes, bytes_len);
        assert_true(slice_equal(buffer_slice(&again), (struct slice){text, len}));
        buffer_free(&again);
    }
    assert_true(accepted > 1000);
}

static void bytes_survive_a_round_trip(void **state)
{
    (void)state;
    struct random random;
    random_init_seeded(&random, 12);
    for (size_t len = 0; len < 200; len++) {
        unsigned char bytes[200], back[202];
        random_bytes(&random, bytes, len);
        struct buffer text = BUFFER_INIT;
        buffer_append_text(&text, "kept:");
        base64url_encode(&text, bytes, len);
        size_t back_len;
        assert_true(decode(slice_after(buffer_slice(&text), 5), back, &back_len));
        assert_int_equal(back_len, len);
        assert_memory_equal(back, bytes, len);
        buffer_free(&text);
    }
}

static void encode_respects_the_bound(void **state)
{
    (void)state;
    struct buffer text = BUFFER_BOUNDED(4);
    base64url_encode(&text, "foob", 4);
    assert_true(text.failed);
    assert_int_equal(text.len, 0);
    buffer_clear(&text);
    base64url_encode(&text, "foo", 3);
    assert_false(text.failed);
    buffer_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_pairs_are_encoded_and_decoded),
        cmocka_unit_test(non_canonical_text_is_refused),
        cmocka_unit_test(empty_slice_decodes_to_nothing),
        cmocka_unit_test(valid_text_is_the_encoding_of_its_bytes),
        cmocka_unit_test(bytes_survive_a_round_trip),
        cmocka_unit_test(encode_respects_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
