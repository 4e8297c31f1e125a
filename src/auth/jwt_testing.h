/* Tokens for tests: keys of every kind, their tokens, and the results of verifying them. Not part
 * of the program. */
#ifndef ROLLCALL_AUTH_JWT_TESTING_H
#define ROLLCALL_AUTH_JWT_TESTING_H

#include "auth/jwt.h"
#include "auth/jwt_sign.h"
#include "auth/keys/key_set.h"
#include "base/buffer.h"

#include <openssl/evp.h>

#define JWT_TESTING_NOW_MS INT64_C(1700000000000)
#define JWT_TESTING_CLAIMS "{\"sub\":\"alice\",\"exp\":1700000060,\"scope\":\"admin\"}"

enum jwt_testing_kind {
    JWT_TESTING_RSA_2048,
    JWT_TESTING_P256,
    JWT_TESTING_ED25519,
    JWT_TESTING_KINDS
};

extern const char *const jwt_testing_kids[JWT_TESTING_KINDS];
extern const char *const jwt_testing_algorithms[JWT_TESTING_KINDS];

struct jwt_testing {
    EVP_PKEY *pkey[JWT_TESTING_KINDS];
    struct jwt_signer *signer[JWT_TESTING_KINDS];
    struct key_set *keys; /* all of them, each with its kid */
};

/* Set up and tear down a cmocka group whose state is a struct jwt_testing. */
int jwt_testing_set_up(void **state);
int jwt_testing_tear_down(void **state);

/* Returns the public halves of the keys, with these names. */
struct key_set *jwt_testing_set(EVP_PKEY *const *pkeys, const char *const *names, size_t count);

/* Signs these parts, whatever they contain. */
struct buffer jwt_testing_sign(const struct jwt_signer *signer, const char *header,
                               const char *claims);

/* Returns a token of alice, as the program makes it. */
struct buffer jwt_testing_token(const struct jwt_testing *fixture, enum jwt_testing_kind kind);

/* Verify the token, and check that nothing is read past its end and that OpenSSL's error queue is
 * empty. jwt_testing_verify() frees the token. */
enum jwt_result jwt_testing_verify_with(const struct key_set *keys, struct slice token);
enum jwt_result jwt_testing_verify(const struct jwt_testing *fixture, struct buffer *token);

#endif
