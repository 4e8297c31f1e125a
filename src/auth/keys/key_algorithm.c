#include "auth/keys/key_algorithm.h"

static const char *const algorithm_names[] = {
    [KEY_RS256] = "RS256",
    [KEY_ES256] = "ES256",
    [KEY_EDDSA] = "EdDSA",
    [KEY_HS256] = "HS256",
};

const char *key_algorithm_name(enum key_algorithm algorithm)
{
    return algorithm_names[algorithm];
}

bool key_algorithm_parse(struct slice name, enum key_algorithm *out)
{
    for (size_t i = 0; i < sizeof(algorithm_names) / sizeof(algorithm_names[0]); i++) {
        if (slice_is(name, algorithm_names[i])) {
            *out = (enum key_algorithm)i;
            return true;
        }
    }
    return false;
}
