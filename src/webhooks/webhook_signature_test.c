#include "webhooks/webhook_signature.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct vector {
    const char *secret;
    const char *id;
    int64_t time_seconds;
    const char *body;
    const char *signature;
};

/* The examples of the standard and of its reference implementations. */
static const struct vector vectors[] = {
    {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
     "{\"test\": 2432232314}", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
    {"whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553,
     "{\"email\":\"test@example.com\",\"username\":\"test_user\"}",
     "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="},
};

static void the_vectors_of_the_standard_are_signed_as_it_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *vector = &vectors[i];
        struct webhook_secret secret;
        struct webhook_headers headers;
        char line[64];
        assert_null(webhook_secret_parse(&secret, slice_of(vector->secret)));
        assert_true(webhook_sign(&headers, &secret, slice_of(vector->id), vector->time_seconds,
                                 slice_of(vector->body)));
        snprintf(line, sizeof(line), "webhook-timestamp: %lld", (long long)vector->time_seconds);
        assert_string_equal(headers.timestamp, line);
        assert_memory_equal(headers.id, "webhook-id: ", 12);
        assert_string_equal(headers.id + 12, vector->id);
        assert_memory_equal(headers.signature, "webhook-signature: ", 19);
        assert_string_equal(headers.signature + 19, vector->signature);
    }
}

static void a_signer_signs_again_with_the_same_key(void **state)
{
    (void)state;
    struct webhook_secret secret;
    struct webhook_headers first, again, other;
    assert_null(webhook_secret_parse(&secret, slice_of(vectors[0].secret)));
    struct webhook_signer signer = {.secret = &secret};
    assert_true(webhook_sign(&first, &secret, SLICE("evt_1"), 1, SLICE("{}")));
    assert_true(webhook_signer_sign(&signer, &other, SLICE("evt_2"), 2, SLICE("[]")));
    assert_true(webhook_signer_sign(&signer, &again, SLICE("evt_1"), 1, SLICE("{}")));
    assert_string_equal(again.signature, first.signature);
    assert_string_not_equal(again.signature, other.signature);
    webhook_signer_free(&signer);
}

static void without_a_secret_there_is_no_signature(void **state)
{
    (void)state;
    struct webhook_secret none = {.len = 0};
    struct webhook_headers headers;
    assert_true(webhook_sign(&headers, &none, SLICE("evt_1"), 1, SLICE("{}")));
    assert_string_equal(headers.signature, "");
    assert_string_equal(headers.id, "webhook-id: evt_1");
}

static void the_longest_id_and_time_fit(void **state)
{
    (void)state;
    char id[WEBHOOK_ID_BYTES_MAX];
    struct webhook_secret secret;
    struct webhook_headers headers;
    memset(id, 'x', sizeof(id));
    assert_null(webhook_secret_parse(&secret, slice_of(vectors[0].secret)));
    assert_true(
        webhook_sign(&headers, &secret, (struct slice){id, sizeof(id)}, INT64_MIN, SLICE("")));
    assert_int_equal(strlen(headers.id), 12 + sizeof(id));
    assert_string_equal(headers.timestamp, "webhook-timestamp: -9223372036854775808");
}

/* Every text differs from a good secret in one thing. */
static const char *const wrong_secrets[] = {
    "",
    "whsec_",
    "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_ MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "whsec_MfKQ9r8GKYqr TwjUPD8ILPZIo2LaLaS",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==AAAA",
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAB==", /* unused bits that are not zero */
    "whsec_MfKQ9r8GKYqrTwjUPD8I",                 /* 15 bytes */
    "whsec_====",
};

static void a_secret_is_read_strictly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(wrong_secrets) / sizeof(wrong_secrets[0]); i++) {
        struct webhook_secret secret = {.len = 7};
        assert_non_null(webhook_secret_parse(&secret, slice_of(wrong_secrets[i])));
        assert_int_equal(secret.len, 0);
    }
    struct webhook_secret secret;
    assert_null(webhook_secret_parse(&secret, SLICE("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA==")));
    assert_int_equal(secret.len, 25);
}

static const char *read_secret_text(struct webhook_secret *secret, struct slice text)
{
    char path[] = "/tmp/webhook_secret_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.data, text.len), (ssize_t)text.len);
    close(fd);
    const char *error = webhook_secret_read(secret, path);
    unlink(path);
    return error;
}

static void a_secret_file_may_end_with_a_new_line_and_is_short(void **state)
{
    (void)state;
    char long_text[WEBHOOK_SECRET_FILE_BYTES_MAX + 10];
    struct webhook_secret secret;
    assert_null(read_secret_text(&secret, SLICE("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")));
    assert_int_equal(secret.len, 24);
    memset(long_text, 'A', sizeof(long_text));
    memcpy(long_text, "whsec_", 6);
    assert_non_null(read_secret_text(&secret, (struct slice){long_text, sizeof(long_text)}));
    assert_int_equal(secret.len, 0);
    assert_non_null(webhook_secret_read(&secret, "/nonexistent/secret"));
    assert_non_null(webhook_secret_read(&secret, "/"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_the_standard_are_signed_as_it_says),
        cmocka_unit_test(a_signer_signs_again_with_the_same_key),
        cmocka_unit_test(without_a_secret_there_is_no_signature),
        cmocka_unit_test(the_longest_id_and_time_fit),
        cmocka_unit_test(a_secret_is_read_strictly),
        cmocka_unit_test(a_secret_file_may_end_with_a_new_line_and_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
