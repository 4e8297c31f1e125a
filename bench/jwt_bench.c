/*
 * Measures the cost of verifying a token, by algorithm and by result, on this machine:
 *
 *     jwt_bench [verifications [RS256 | ES256 | EdDSA]]
 *
 * It reports CPU time, not wall-clock time. Instructions depend even less on other load (half of the
 * verifications are the cheap refusals):
 *
 *     valgrind --tool=callgrind --toggle-collect=jwt_verify jwt_bench 100 RS256
 */
#include "auth/jwt.h"
#include "auth/jwt_sign.h"
#include "auth/keys/key_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t now_ms = INT64_C(1700000000000);

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void measure_verification(const char *name, const struct key_set *keys, struct slice token,
                                 enum jwt_result expected, long count)
{
    struct jwt_policy policy = JWT_POLICY_DEFAULT;
    struct identity identity;
    double start = cpu_seconds();
    for (long i = 0; i < count; i++) {
        if (jwt_verify(keys, &policy, token, now_ms, &identity) != expected)
            abort();
    }
    printf("%-22s %8.2f µs\n", name, (cpu_seconds() - start) * 1e6 / (double)count);
}

static struct buffer sign_bench_token(const EVP_PKEY *pkey, const char *kid)
{
    struct jwt_sign_claims claims = {
        .user = SLICE("alice"),
        .issued_at_wall_ms = now_ms,
        .expires_at_wall_ms = now_ms + 60 * 1000,
    };
    struct jwt_signer *signer = key_testing_signer(pkey, kid);
    struct buffer token = BUFFER_INIT;
    if (!jwt_sign(signer, &claims, &token))
        abort();
    jwt_signer_free(&signer);
    return token;
}

/* Takes ownership of `pkey`. */
static void measure_algorithm(const char *name, EVP_PKEY *pkey, long count)
{
    struct auth_error error;
    struct buffer text = BUFFER_INIT;
    buffer_append_text(&text, "{\"keys\":[");
    key_testing_jwk(pkey, "bench", "", &text);
    buffer_append_text(&text, "]}");
    struct key_set *keys = key_testing_parse(buffer_slice(&text), &error);
    struct buffer token = sign_bench_token(pkey, "bench");
    struct buffer unknown_key = sign_bench_token(pkey, "unknown");
    if (!keys)
        abort();
    measure_verification(name, keys, buffer_slice(&token), JWT_OK, count);
    measure_verification("  unknown kid", keys, buffer_slice(&unknown_key), JWT_UNKNOWN_KEY, count);
    buffer_free(&token);
    buffer_free(&unknown_key);
    buffer_free(&text);
    key_set_release(&keys);
    EVP_PKEY_free(pkey);
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
    struct slice only = slice_of(argc > 2 ? argv[2] : NULL);
    if (count < 1)
        return EXIT_FAILURE;
    if (only.len == 0 || slice_is(only, "RS256"))
        measure_algorithm("RS256 (2048 bits)", key_testing_rsa(2048), count);
    if (only.len == 0 || slice_is(only, "ES256"))
        measure_algorithm("ES256", key_testing_p256(), count);
    if (only.len == 0 || slice_is(only, "EdDSA"))
        measure_algorithm("EdDSA (Ed25519)", key_testing_ed25519(), count);
    return EXIT_SUCCESS;
}
