#include "auth/jwt_claims.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>
#include <stdio.h>

static const int64_t now_ms = INT64_C(1700000000000);

static enum jwt_result check_with(const char *claims, const struct jwt_policy *policy,
                                  struct identity *out)
{
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, claims);
    enum jwt_result result = jwt_claims_check(text.data, text.len, policy, now_ms, out);
    buffer_free(&text);
    return result;
}

static const struct jwt_policy DEFAULTS = JWT_POLICY_DEFAULT;

static enum jwt_result check(const char *claims)
{
    struct identity identity;
    return check_with(claims, &DEFAULTS, &identity);
}

struct expectation {
    const char *claims;
    enum jwt_result result;
};

static void expect_all(const struct expectation *cases, size_t count,
                       const struct jwt_policy *policy)
{
    for (size_t i = 0; i < count; i++) {
        struct identity identity;
        enum jwt_result result = check_with(cases[i].claims, policy, &identity);
        if (result != cases[i].result)
            fail_msg("%s: expected %d, got %d", cases[i].claims, cases[i].result, result);
    }
}

#define EXPECT(cases, policy) expect_all(cases, sizeof(cases) / sizeof((cases)[0]), policy)

static void valid_claims_fill_the_identity(void **state)
{
    (void)state;
    struct identity identity;
    assert_int_equal(check_with("{\"sub\":\"al\\u0069ce\",\"exp\":1700000060.25,"
                                "\"scope\":\"read  deliver admins admin\",\"x\":{\"sub\":\"no\"}}",
                                &DEFAULTS, &identity),
                     JWT_OK);
    assert_true(slice_is(identity_user(&identity), "alice"));
    assert_int_equal(identity.expires_at_wall_ms, 1700000060250);
    assert_true(identity_has_scope(&identity, IDENTITY_SCOPE_ADMIN));
    assert_true(identity_has_scope(&identity, IDENTITY_SCOPE_DELIVER));
}

static void only_whole_scopes_are_recognised(void **state)
{
    (void)state;
    assert_int_equal(jwt_claims_scopes(SLICE("")), 0);
    assert_int_equal(jwt_claims_scopes(SLICE("admins xadmin ADMIN deliver2 admin,deliver")), 0);
    assert_int_equal(jwt_claims_scopes(SLICE("x admin")), IDENTITY_SCOPE_ADMIN);
    assert_int_equal(jwt_claims_scopes(SLICE("deliver ")), IDENTITY_SCOPE_DELIVER);
}

static void refused_claims_leave_the_identity_unchanged(void **state)
{
    (void)state;
    struct identity identity, before;
    memset(&identity, 0x5a, sizeof(identity));
    memcpy(&before, &identity, sizeof(before));
    assert_int_equal(
        check_with("{\"sub\":\"alice\",\"exp\":1,\"nbf\":1800000000}", &DEFAULTS, &identity),
        JWT_NOT_YET_VALID);
    assert_memory_equal(&identity, &before, sizeof(before));
}

static void expired_token_fills_the_identity(void **state)
{
    (void)state;
    struct identity identity;
    assert_int_equal(check_with("{\"sub\":\"alice\",\"exp\":1}", &DEFAULTS, &identity),
                     JWT_EXPIRED);
    assert_true(slice_is(identity_user(&identity), "alice"));
    assert_int_equal(identity.expires_at_wall_ms, 1000);
}

#define SUBJECT "\"sub\":\"a\""
#define EXPIRY "\"exp\":1800000000"

static void claims_without_a_valid_subject_are_refused(void **state)
{
    static const struct expectation CASES[] = {
        {"{" EXPIRY "}", JWT_BAD_SUBJECT},
        {"{\"sub\":\"\"," EXPIRY "}", JWT_BAD_SUBJECT},
        {"{\"sub\":\"a\\u0000b\"," EXPIRY "}", JWT_BAD_SUBJECT},
        {"{\"sub\":\"a\\u007f\"," EXPIRY "}", JWT_BAD_SUBJECT},
        {"{\"sub\":\"a\\u0085\"," EXPIRY "}", JWT_BAD_SUBJECT},
        {"{\"sub\":7," EXPIRY "}", JWT_BAD_CLAIMS},
        {"{\"sub\":null," EXPIRY "}", JWT_BAD_CLAIMS},
        {"{\"sub\":\"\xff\"," EXPIRY "}", JWT_BAD_CLAIMS},
    };
    (void)state;
    EXPECT(CASES, &DEFAULTS);
}

static void subject_length_is_bounded(void **state)
{
    (void)state;
    char claims[256];
    snprintf(claims, sizeof(claims), "{\"sub\":\"%0128d\"," EXPIRY "}", 0);
    assert_int_equal(check(claims), JWT_OK);
    snprintf(claims, sizeof(claims), "{\"sub\":\"%0129d\"," EXPIRY "}", 0);
    assert_int_equal(check(claims), JWT_BAD_SUBJECT);
}

static void claims_without_a_future_expiry_are_refused(void **state)
{
    static const struct expectation CASES[] = {
        {"{" SUBJECT "}", JWT_NO_EXPIRY},
        {"{" SUBJECT ",\"exp\":\"1800000000\"}", JWT_BAD_CLAIMS},
        {"{" SUBJECT ",\"exp\":null}", JWT_BAD_CLAIMS},
        {"{" SUBJECT ",\"exp\":1700000000}", JWT_EXPIRED},
        {"{" SUBJECT ",\"exp\":1699999999.999}", JWT_EXPIRED},
        {"{" SUBJECT ",\"exp\":1700000000.5}", JWT_OK},
        {"{" SUBJECT ",\"exp\":0}", JWT_EXPIRED},
        {"{" SUBJECT ",\"exp\":-1e300}", JWT_EXPIRED},
    };
    (void)state;
    EXPECT(CASES, &DEFAULTS);
}

static void huge_times_are_clamped(void **state)
{
    (void)state;
    struct identity identity;
    struct jwt_policy policy = {.expiry_leeway_ms = 5000, .not_before_leeway_ms = 5000};
    assert_int_equal(check_with("{" SUBJECT ",\"exp\":1e300}", &policy, &identity), JWT_OK);
    assert_int_equal(identity.expires_at_wall_ms, 253402300799999);
    assert_int_equal(check("{" SUBJECT ",\"exp\":9223372036854775808}"), JWT_OK);
    assert_int_equal(check("{" SUBJECT ",\"exp\":1e300,\"nbf\":1e300}"), JWT_NOT_YET_VALID);
    assert_int_not_equal(check("{" SUBJECT ",\"exp\":NaN}"), JWT_OK);
    assert_int_not_equal(check("{" SUBJECT ",\"exp\":0x7fffffff}"), JWT_OK);
}

static void times_within_the_leeway_are_accepted(void **state)
{
    static const struct jwt_policy policy = {.expiry_leeway_ms = 2000,
                                             .not_before_leeway_ms = 3000};
    static const struct expectation CASES[] = {
        {"{" SUBJECT ",\"exp\":1699999999}", JWT_OK},
        {"{" SUBJECT ",\"exp\":1699999998}", JWT_EXPIRED},
        {"{" SUBJECT "," EXPIRY ",\"nbf\":1700000003}", JWT_OK},
        {"{" SUBJECT "," EXPIRY ",\"nbf\":1700000003.5}", JWT_NOT_YET_VALID},
    };
    (void)state;
    EXPECT(CASES, &policy);
    assert_int_equal(check("{" SUBJECT "," EXPIRY ",\"nbf\":1700000006}"), JWT_NOT_YET_VALID);
}

static void issuer_and_audience_are_checked_if_required(void **state)
{
#define REST "," SUBJECT "," EXPIRY "}"
    static const struct jwt_policy policy = {.issuer = SLICE("me"), .audience = SLICE("chat")};
    static const struct expectation CASES[] = {
        {"{\"iss\":\"me\",\"aud\":\"chat\"" REST, JWT_OK},
        {"{\"iss\":\"me\",\"aud\":[\"mail\",\"chat\"]" REST, JWT_OK},
        {"{\"iss\":\"mee\",\"aud\":\"chat\"" REST, JWT_WRONG_ISSUER},
        {"{\"aud\":\"chat\"" REST, JWT_WRONG_ISSUER},
        {"{\"iss\":\"me\"" REST, JWT_WRONG_AUDIENCE},
        {"{\"iss\":\"me\",\"aud\":[]" REST, JWT_WRONG_AUDIENCE},
        {"{\"iss\":\"me\",\"aud\":\"cha\"" REST, JWT_WRONG_AUDIENCE},
        {"{\"iss\":\"me\",\"aud\":[7,\"chat\"]" REST, JWT_BAD_CLAIMS},
    };
    (void)state;
    EXPECT(CASES, &policy);
    assert_int_equal(check("{\"iss\":\"you\",\"aud\":\"mail\"" REST), JWT_OK);
}

static void duplicate_claim_is_refused(void **state)
{
    static const struct expectation CASES[] = {
        {"{" SUBJECT "," EXPIRY ",\"sub\":\"b\"}", JWT_BAD_CLAIMS},
        {"{" SUBJECT ",\"exp\":1," EXPIRY "}", JWT_BAD_CLAIMS},
        {"{" SUBJECT "," EXPIRY ",\"s\\u0075b\":\"b\"}", JWT_BAD_CLAIMS},
        {"{" SUBJECT "," EXPIRY ",\"scope\":\"\",\"scope\":\"admin\"}", JWT_BAD_CLAIMS},
        {"{" SUBJECT "," EXPIRY ",\"x\":1,\"x\":2}", JWT_OK},
    };
    (void)state;
    EXPECT(CASES, &DEFAULTS);
}

static void claims_that_are_not_an_object_are_refused(void **state)
{
    static const char *const CASES[] = {
        "",
        "[]",
        "\"sub\"",
        "{" SUBJECT "," EXPIRY,
        "{" SUBJECT "," EXPIRY "}}",
        "{" SUBJECT "," EXPIRY ",}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++)
        assert_int_equal(check(CASES[i]), JWT_BAD_CLAIMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_claims_fill_the_identity),
        cmocka_unit_test(only_whole_scopes_are_recognised),
        cmocka_unit_test(refused_claims_leave_the_identity_unchanged),
        cmocka_unit_test(expired_token_fills_the_identity),
        cmocka_unit_test(claims_without_a_valid_subject_are_refused),
        cmocka_unit_test(subject_length_is_bounded),
        cmocka_unit_test(claims_without_a_future_expiry_are_refused),
        cmocka_unit_test(huge_times_are_clamped),
        cmocka_unit_test(times_within_the_leeway_are_accepted),
        cmocka_unit_test(issuer_and_audience_are_checked_if_required),
        cmocka_unit_test(duplicate_claim_is_refused),
        cmocka_unit_test(claims_that_are_not_an_object_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
