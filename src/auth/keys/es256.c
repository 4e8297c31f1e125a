#include "auth/keys/es256.h"

#include <openssl/bn.h>
#include <openssl/ecdsa.h>

enum { HALF = ES256_RAW_BYTES / 2 };

bool es256_to_der(const unsigned char raw[ES256_RAW_BYTES], unsigned char der[ES256_DER_BYTES_MAX],
                  size_t *der_len)
{
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, HALF, NULL);
    BIGNUM *s = BN_bin2bn(raw + HALF, HALF, NULL);
    if (!signature || !r || !s || ECDSA_SIG_set0(signature, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        ECDSA_SIG_free(signature);
        return false;
    }
    int len = i2d_ECDSA_SIG(signature, &der);
    ECDSA_SIG_free(signature);
    *der_len = len > 0 ? (size_t)len : 0;
    return len > 0;
}

bool es256_from_der(const unsigned char *der, size_t der_len, unsigned char raw[ES256_RAW_BYTES])
{
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, (long)der_len);
    if (!signature)
        return false;
    bool ok = BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, HALF) == HALF &&
              BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + HALF, HALF) == HALF;
    ECDSA_SIG_free(signature);
    return ok;
}
