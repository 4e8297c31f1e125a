#include "auth/jwt_claims.h"

#include "base/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above first */
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

static enum jwt_result check(const char *claims)
{
    struct identity identity;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    return check_with(claims, &policy, &identity);
}

static void fills_the_identity(void **state)
{
    (void)state;
    struct identity identity;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    assert_int_equal(check_with("{\"sub\":\"al\\u0069ce\",\"exp\":1700000060.25,"
                                "\"scope\":\"read  deliver admins admin\",\"x\":{\"sub\":\"no\"}}",
                                &policy, &identity),
                     JWT_OK);
    assert_true(slice_is(identity_user(&identity), "alice"));
    assert_int_equal(identity.expires_at_wall_ms, 1700000060250);
    assert_true(identity_has_scope(&identity, IDENTITY_SCOPE_ADMIN));
    assert_true(identity_has_scope(&identity, IDENTITY_SCOPE_DELIVER));
}

static void knows_only_whole_scopes(void **state)
{
    (void)state;
    assert_int_equal(jwt_claims_scopes(SLICE("")), 0);
    assert_int_equal(jwt_claims_scopes(SLICE("admins xadmin ADMIN deliver2 admin,deliver")), 0);
    assert_int_equal(jwt_claims_scopes(SLICE("x admin")), IDENTITY_SCOPE_ADMIN);
    assert_int_equal(jwt_claims_scopes(SLICE("deliver ")), IDENTITY_SCOPE_DELIVER);
}

static void leaves_the_identity_alone_on_failure(void **state)
{
    (void)state;
    struct identity identity, before;
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    memset(&identity, 0x5a, sizeof(identity));
    memcpy(&before, &identity, sizeof(before));
    assert_int_equal(check_with("{\"sub\":\"alice\",\"exp\":1}", &policy, &identity), JWT_EXPIRED);
    assert_memory_equal(&identity, &before, sizeof(before));
}

static void requires_a_subject(void **state)
{
    (void)state;
    char text[256];
    assert_int_equal(check("{\"exp\":1800000000}"), JWT_BAD_SUBJECT);
    assert_int_equal(check("{\"sub\":\"\",\"exp\":1800000000}"), JWT_BAD_SUBJECT);
    assert_int_equal(check("{\"sub\":\"a\\u0000b\",\"exp\":1800000000}"), JWT_BAD_SUBJECT);
    assert_int_equal(check("{\"sub\":\"a\\u007f\",\"exp\":1800000000}"), JWT_BAD_SUBJECT);
    assert_int_equal(check("{\"sub\":\"a\\u0085\",\"exp\":1800000000}"), JWT_BAD_SUBJECT);
    assert_int_equal(check("{\"sub\":7,\"exp\":1800000000}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":null,\"exp\":1800000000}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"\xff\",\"exp\":1800000000}"), JWT_BAD_CLAIMS);
    snprintf(text, sizeof(text), "{\"sub\":\"%0128d\",\"exp\":1800000000}", 0);
    assert_int_equal(check(text), JWT_OK);
    snprintf(text, sizeof(text), "{\"sub\":\"%0129d\",\"exp\":1800000000}", 0);
    assert_int_equal(check(text), JWT_BAD_SUBJECT);
}

static void requires_an_expiry_in_the_future(void **state)
{
    (void)state;
    assert_int_equal(check("{\"sub\":\"a\"}"), JWT_NO_EXPIRY);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":\"1800000000\"}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":null}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1700000000}"), JWT_EXPIRED);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1699999999.999}"), JWT_EXPIRED);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1700000000.5}"), JWT_OK);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":0}"), JWT_EXPIRED);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":-1e300}"), JWT_EXPIRED);
}

static void survives_huge_numbers(void **state)
{
    (void)state;
    struct identity identity;
    struct jwt_policy policy = {.expiry_leeway_ms = 5000, .not_before_leeway_ms = 5000};
    assert_int_equal(check_with("{\"sub\":\"a\",\"exp\":1e300}", &policy, &identity), JWT_OK);
    assert_int_equal(identity.expires_at_wall_ms, 253402300799999);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":9223372036854775808}"), JWT_OK);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1e300,\"nbf\":1e300}"), JWT_NOT_YET_VALID);
    assert_int_not_equal(check("{\"sub\":\"a\",\"exp\":NaN}"), JWT_OK);
    assert_int_not_equal(check("{\"sub\":\"a\",\"exp\":0x7fffffff}"), JWT_OK);
}

static void allows_the_leeway_and_no_more(void **state)
{
    (void)state;
    struct identity identity;
    struct jwt_policy policy = {.expiry_leeway_ms = 2000, .not_before_leeway_ms = 3000};
    assert_int_equal(check_with("{\"sub\":\"a\",\"exp\":1699999999}", &policy, &identity), JWT_OK);
    assert_int_equal(check_with("{\"sub\":\"a\",\"exp\":1699999998}", &policy, &identity),
                     JWT_EXPIRED);
    assert_int_equal(
        check_with("{\"sub\":\"a\",\"exp\":1800000000,\"nbf\":1700000003}", &policy, &identity),
        JWT_OK);
    assert_int_equal(
        check_with("{\"sub\":\"a\",\"exp\":1800000000,\"nbf\":1700000003.5}", &policy, &identity),
        JWT_NOT_YET_VALID);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,\"nbf\":1700000006}"),
                     JWT_NOT_YET_VALID);
}

static void honours_issuer_and_audience_when_asked(void **state)
{
    (void)state;
    struct identity identity;
    struct jwt_policy policy = {.issuer = SLICE("me"), .audience = SLICE("chat")};
#define REST ",\"sub\":\"a\",\"exp\":1800000000}"
    assert_int_equal(check("{\"iss\":\"you\",\"aud\":\"mail\"" REST), JWT_OK);
    assert_int_equal(check_with("{\"iss\":\"me\",\"aud\":\"chat\"" REST, &policy, &identity),
                     JWT_OK);
    assert_int_equal(
        check_with("{\"iss\":\"me\",\"aud\":[\"mail\",\"chat\"]" REST, &policy, &identity), JWT_OK);
    assert_int_equal(check_with("{\"iss\":\"mee\",\"aud\":\"chat\"" REST, &policy, &identity),
                     JWT_WRONG_ISSUER);
    assert_int_equal(check_with("{\"aud\":\"chat\"" REST, &policy, &identity), JWT_WRONG_ISSUER);
    assert_int_equal(check_with("{\"iss\":\"me\"" REST, &policy, &identity), JWT_WRONG_AUDIENCE);
    assert_int_equal(check_with("{\"iss\":\"me\",\"aud\":[]" REST, &policy, &identity),
                     JWT_WRONG_AUDIENCE);
    assert_int_equal(check_with("{\"iss\":\"me\",\"aud\":\"cha\"" REST, &policy, &identity),
                     JWT_WRONG_AUDIENCE);
    assert_int_equal(check_with("{\"iss\":\"me\",\"aud\":[7,\"chat\"]" REST, &policy, &identity),
                     JWT_BAD_CLAIMS);
}

static void refuses_a_claim_that_stands_twice(void **state)
{
    (void)state;
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,\"sub\":\"b\"}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1,\"exp\":1800000000}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,\"s\\u0075b\":\"b\"}"),
                     JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,\"scope\":\"\",\"scope\":\"admin\"}"),
                     JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,\"x\":1,\"x\":2}"), JWT_OK);
}

static void refuses_what_is_no_object(void **state)
{
    (void)state;
    assert_int_equal(check(""), JWT_BAD_CLAIMS);
    assert_int_equal(check("[]"), JWT_BAD_CLAIMS);
    assert_int_equal(check("\"sub\""), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000}}"), JWT_BAD_CLAIMS);
    assert_int_equal(check("{\"sub\":\"a\",\"exp\":1800000000,}"), JWT_BAD_CLAIMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_the_identity),
        cmocka_unit_test(knows_only_whole_scopes),
        cmocka_unit_test(leaves_the_identity_alone_on_failure),
        cmocka_unit_test(requires_a_subject),
        cmocka_unit_test(requires_an_expiry_in_the_future),
        cmocka_unit_test(survives_huge_numbers),
        cmocka_unit_test(allows_the_leeway_and_no_more),
        cmocka_unit_test(honours_issuer_and_audience_when_asked),
        cmocka_unit_test(refuses_a_claim_that_stands_twice),
        cmocka_unit_test(refuses_what_is_no_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
