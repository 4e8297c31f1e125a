/* The issuer when out of memory: it is made or not, has its kept keys or none, and nothing leaks. */
#include "issuer/issuer.h"

#include "auth/keys/key_testing.h"
#include "issuer/kept_set.h"
#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static char kept_file[] = "/tmp/rollcall-issuer-XXXXXX";
static struct metrics metrics;

static void on_keys_unused(void *arg, struct key_set *keys)
{
    (void)arg;
    key_set_release(&keys);
}

static size_t make_issuer_without_memory(alloc_fault_start fail_at, size_t n)
{
    struct issuer_options options = {.url = "http://127.0.0.1:1/keys",
                                     .kept_file = kept_file,
                                     .refresh_ms = 60000,
                                     .metrics = &metrics,
                                     .on_keys = on_keys_unused};
    fail_at(n);
    struct issuer *issuer = issuer_make(&options);
    size_t failed = alloc_fault_off();
    assert_true(issuer || failed);
    struct key_set *keys = issuer ? issuer_kept_keys(issuer) : NULL;
    assert_true(keys || failed);
    if (keys)
        assert_int_equal(key_set_count(keys), 1);
    key_set_release(&keys);
    issuer_free(&issuer);
    return failed;
}

static void issuer_without_memory_is_not_made_or_has_no_kept_keys(void **state)
{
    (void)state;
    EVP_PKEY *pkey = key_testing_p256();
    struct buffer text = BUFFER_INIT;
    buffer_append_slice(&text, SLICE("{\"keys\":["));
    key_testing_jwk(pkey, "one", "", &text);
    buffer_append_slice(&text, SLICE("]}"));
    int fd = mkstemp(kept_file);
    assert_true(fd >= 0);
    close(fd);
    assert_true(kept_set_write(kept_file, buffer_slice(&text)));
    assert_true(alloc_fault_sweep(alloc_fault_after, make_issuer_without_memory) > 4);
    assert_true(alloc_fault_sweep(alloc_fault_from, make_issuer_without_memory) > 4);
    unlink(kept_file);
    buffer_free(&text);
    EVP_PKEY_free(pkey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(issuer_without_memory_is_not_made_or_has_no_kept_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
