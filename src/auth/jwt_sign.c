#include "auth/jwt_sign.h"

#include "auth/keys/es256.h"
#include "auth/keys/jwk.h"
#include "auth/keys/key.h"
#include "auth/keys/key_file.h"
#include "auth/keys/pem.h"
#include "text/base64url.h"
#include "text/json.h"

#include <openssl/err.h>
#include <stdlib.h>

struct jwt_signer {
    EVP_PKEY *pkey;
    enum key_algorithm algorithm;
    struct buffer header; /* encoded; the same for every token */
};

static bool encode_token_header(struct jwt_signer *signer, struct slice kid)
{
    char thumbprint[KEY_THUMBPRINT_LEN];
    if (kid.len == 0) {
        if (!jwk_thumbprint(signer->pkey, thumbprint))
            return false;
        kid = (struct slice){thumbprint, sizeof(thumbprint)};
    }
    struct buffer text = BUFFER_INIT;
    json_write_object(&text);
    json_write_key_string(&text, SLICE("alg"), slice_of(key_algorithm_name(signer->algorithm)));
    json_write_key_string(&text, SLICE("typ"), SLICE("JWT"));
    json_write_key_string(&text, SLICE("kid"), kid);
    json_write_object_end(&text);
    base64url_encode(&signer->header, text.data, text.len);
    bool ok = !text.failed && !signer->header.failed;
    buffer_free(&text);
    return ok;
}

struct jwt_signer *jwt_signer_parse(struct slice pem, struct slice kid, struct auth_error *error)
{
    EVP_PKEY *pkey = pem_read_private(pem, error);
    if (!pkey)
        return NULL;
    struct jwt_signer *signer = calloc(1, sizeof(*signer));
    if (!signer) {
        EVP_PKEY_free(pkey);
        auth_error_set(error, "out of memory");
        return NULL;
    }
    signer->pkey = pkey;
    bool ok = key_algorithm_of(pkey, &signer->algorithm, error);
    if (ok && !encode_token_header(signer, kid))
        ok = auth_error_set(error, "out of memory");
    if (!ok)
        jwt_signer_free(&signer);
    return signer;
}

struct jwt_signer *jwt_signer_load(const char *path, struct auth_error *error)
{
    struct key_file file;
    struct auth_error reason;
    if (!key_file_read(path, &file, error))
        return NULL;
    struct slice pem = {file.data, file.len};
    struct jwt_signer *signer = jwt_signer_parse(pem, SLICE_NONE, &reason);
    key_file_free(&file);
    if (!signer)
        auth_error_set(error, "%s: %s", path, reason.text);
    return signer;
}

void jwt_signer_free(struct jwt_signer **held)
{
    struct jwt_signer *signer = *held;
    *held = NULL;
    if (!signer)
        return;
    EVP_PKEY_free(signer->pkey);
    buffer_free(&signer->header);
    free(signer);
}

/* Appends a dot and the signature of everything after `from`. */
static bool append_token_signature(const struct jwt_signer *signer, size_t from, struct buffer *out)
{
    unsigned char signature[KEY_SIGNATURE_BYTES_MAX];
    unsigned char raw[ES256_RAW_BYTES];
    size_t len = sizeof(signature);
    struct slice message = slice_after(buffer_slice(out), from);
    const EVP_MD *digest = signer->algorithm == KEY_EDDSA ? NULL : EVP_sha256();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && !out->failed &&
              EVP_DigestSignInit(context, NULL, digest, NULL, signer->pkey) == 1 &&
              EVP_DigestSign(context, signature, &len, (const unsigned char *)message.data,
                             message.len) == 1;
    EVP_MD_CTX_free(context);
    if (!ok)
        return false;
    buffer_append_byte(out, '.');
    if (signer->algorithm != KEY_ES256) {
        base64url_encode(out, signature, len);
        return !out->failed;
    }
    if (!es256_from_der(signature, len, raw))
        return false;
    base64url_encode(out, raw, sizeof(raw));
    return !out->failed;
}

/* Appends the encoded header, the claims, which it encodes, and the signature of both. */
static bool append_signed_token(const struct jwt_signer *signer, struct slice header,
                                struct slice claims, struct buffer *out)
{
    size_t from = out->len;
    buffer_append_slice(out, header);
    buffer_append_byte(out, '.');
    base64url_encode(out, claims.data, claims.len);
    ERR_set_mark();
    bool ok = append_token_signature(signer, from, out);
    ERR_pop_to_mark();
    if (!ok)
        out->len = from;
    return ok;
}

static void write_optional_claim(struct buffer *out, struct slice name, struct slice value)
{
    if (value.len > 0)
        json_write_key_string(out, name, value);
}

bool jwt_sign(const struct jwt_signer *signer, const struct jwt_sign_claims *claims,
              struct buffer *out)
{
    struct buffer text = BUFFER_INIT;
    json_write_object(&text);
    json_write_key_string(&text, SLICE("sub"), claims->user);
    json_write_key_int(&text, SLICE("iat"), claims->issued_at_wall_ms / 1000);
    json_write_key_int(&text, SLICE("exp"), claims->expires_at_wall_ms / 1000);
    if (claims->expires_at_wall_ms % 1000)
        buffer_printf(&text, ".%03d", (int)(claims->expires_at_wall_ms % 1000));
    write_optional_claim(&text, SLICE("scope"), claims->scope);
    write_optional_claim(&text, SLICE("iss"), claims->issuer);
    write_optional_claim(&text, SLICE("aud"), claims->audience);
    json_write_object_end(&text);
    bool ok = !text.failed &&
              append_signed_token(signer, buffer_slice(&signer->header), buffer_slice(&text), out);
    buffer_free(&text);
    return ok;
}

bool jwt_sign_raw(const struct jwt_signer *signer, struct slice header, struct slice claims,
                  struct buffer *out)
{
    struct buffer encoded = BUFFER_INIT;
    base64url_encode(&encoded, header.data, header.len);
    bool ok = !encoded.failed && append_signed_token(signer, buffer_slice(&encoded), claims, out);
    buffer_free(&encoded);
    return ok;
}

bool jwt_signer_write_jwks(const struct jwt_signer *signer, struct buffer *out)
{
    json_write_object(out);
    json_write_key(out, SLICE("keys"));
    json_write_array(out);
    bool ok = jwk_write(out, signer->pkey);
    json_write_array_end(out);
    json_write_object_end(out);
    return ok && !out->failed;
}
