#include "auth/turn_credentials.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h requires the four headers above. */
#include <cmocka.h>

/* The credentials were computed with Python's hmac module. */
static void credentials_are_those_that_a_turn_server_computes(void **state)
{
    (void)state;
    struct turn_credentials made;
    assert_true(turn_credentials_make(&made, SLICE("north"), SLICE("alice"), 1769860800));
    assert_string_equal(made.username, "1769860800:alice");
    assert_string_equal(made.credential, "IlZJxU+QgPg040tUrzlXO1DWlvw=");
}

static void longest_user_id_fits(void **state)
{
    (void)state;
    struct turn_credentials made;
    char user[USER_ID_BYTES_MAX];
    for (size_t i = 0; i < sizeof(user); i += 2)
        memcpy(&user[i], "\xc3\xbc", 2);
    assert_true(turn_credentials_make(&made, SLICE("s"), (struct slice){user, sizeof(user)},
                                      INT64_C(9999999999)));
    assert_int_equal(strlen(made.username), strlen("9999999999:") + sizeof(user));
    assert_string_equal(made.credential, "hsMfRVNT4QZSHu0y29OKX05dMm0=");
    assert_true(
        turn_credentials_make(&made, SLICE("s"), (struct slice){user, sizeof(user)}, INT64_MIN));
    assert_int_equal(strlen(made.username), TURN_USERNAME_BYTES_MAX - 2 * USER_ID_BYTES_MAX);
    memset(user, '\'', sizeof(user));
    assert_true(
        turn_credentials_make(&made, SLICE("s"), (struct slice){user, sizeof(user)}, INT64_MIN));
    assert_int_equal(strlen(made.username), TURN_USERNAME_BYTES_MAX);
}

static void characters_that_coturn_refuses_are_escaped(void **state)
{
    (void)state;
    struct turn_credentials made;
    assert_true(
        turn_credentials_make(&made, SLICE("s"), SLICE("J\xc3\xbcrgen \"O'Neil\" \\ 5%"), 7));
    assert_string_equal(made.username, "7:J\xc3\xbcrgen%20%22O%27Neil%22%20%5C%205%25");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credentials_are_those_that_a_turn_server_computes),
        cmocka_unit_test(longest_user_id_fits),
        cmocka_unit_test(characters_that_coturn_refuses_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
