#include "auth/keys/dev_keys.h"

#include "auth/jwt_sign.h"
#include "auth/keys/key_file.h"
#include "base/buffer.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEV_KEY_BITS = 2048 };

static bool fail_dev_keys(struct auth_error *error, const char *path)
{
    return auth_error_set(error, "%s: %s", path, strerror(errno));
}

static bool write_dev_key_bytes(int fd, struct slice bytes)
{
    while (bytes.len > 0) {
        ssize_t written = write(fd, bytes.data, bytes.len);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        bytes = slice_after(bytes, (size_t)written);
    }
    return fsync(fd) == 0;
}

/* Writes a file next to `path` with a unique name, which it returns in `temporary`. */
static bool write_temporary_dev_key(const char *path, struct slice bytes, mode_t mode,
                                    char temporary[PATH_MAX], struct auth_error *error)
{
    struct random random;
    random_init_system(&random);
    unsigned long long unique = random_u64(&random);
    if (snprintf(temporary, PATH_MAX, "%s.%016llx", path, unique) >= PATH_MAX)
        return auth_error_set(error, "%s: the path is too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return fail_dev_keys(error, temporary);
    bool ok = write_dev_key_bytes(fd, bytes) || fail_dev_keys(error, temporary);
    if (close(fd) != 0 && ok)
        ok = fail_dev_keys(error, temporary);
    if (!ok)
        unlink(temporary);
    return ok;
}

/* Puts the file in place unless one exists; afterwards one exists. */
static bool install_dev_key_unless_exists(const char *path, struct slice bytes,
                                          struct auth_error *error)
{
    char temporary[PATH_MAX];
    if (!write_temporary_dev_key(path, bytes, 0600, temporary, error))
        return false;
    bool ok = link(temporary, path) == 0 || errno == EEXIST || fail_dev_keys(error, path);
    unlink(temporary);
    return ok;
}

static bool install_dev_key_replacing(const char *path, struct slice bytes,
                                      struct auth_error *error)
{
    char temporary[PATH_MAX];
    if (!write_temporary_dev_key(path, bytes, 0644, temporary, error))
        return false;
    if (rename(temporary, path) == 0)
        return true;
    fail_dev_keys(error, path);
    unlink(temporary);
    return false;
}

static bool ensure_dev_private_key(const char *path, struct auth_error *error)
{
    if (access(path, F_OK) == 0)
        return true;
    char *pem = NULL;
    long len = 0;
    EVP_PKEY *pkey = EVP_RSA_gen(DEV_KEY_BITS);
    BIO *bio = BIO_new(BIO_s_secmem());
    bool ok = pkey && bio && PEM_write_bio_PKCS8PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL) &&
              (len = BIO_get_mem_data(bio, &pem)) > 0;
    if (ok)
        ok = install_dev_key_unless_exists(path, (struct slice){pem, (size_t)len}, error);
    else
        auth_error_set(error, "%s: cannot generate a key", path);
    if (pem)
        OPENSSL_cleanse(pem, (size_t)len);
    BIO_free(bio);
    EVP_PKEY_free(pkey);
    return ok;
}

static bool dev_key_file_holds(const char *path, struct slice bytes)
{
    struct key_file file;
    struct auth_error ignored;
    if (!key_file_read(path, &file, &ignored))
        return false;
    bool same = slice_equal((struct slice){file.data, file.len}, bytes);
    key_file_free(&file);
    return same;
}

static bool ensure_dev_public_key(const struct dev_keys *keys, struct auth_error *error)
{
    struct jwt_signer *signer = jwt_signer_load(keys->private_path, error);
    if (!signer)
        return false;
    struct buffer text = BUFFER_INIT;
    bool ok = jwt_signer_write_jwks(signer, &text);
    buffer_append_byte(&text, '\n');
    jwt_signer_free(&signer);
    if (!ok || text.failed)
        ok = auth_error_set(error, "%s: out of memory", keys->public_path);
    else
        ok = dev_key_file_holds(keys->public_path, buffer_slice(&text)) ||
             install_dev_key_replacing(keys->public_path, buffer_slice(&text), error);
    buffer_free(&text);
    return ok;
}

bool dev_keys_ensure(const char *data_dir, struct dev_keys *out, struct auth_error *error)
{
    int a = snprintf(out->private_path, PATH_MAX, "%s/" DEV_KEYS_PRIVATE_NAME, data_dir);
    int b = snprintf(out->public_path, PATH_MAX, "%s/" DEV_KEYS_PUBLIC_NAME, data_dir);
    if (a < 0 || b < 0 || a >= PATH_MAX || b >= PATH_MAX)
        return auth_error_set(error, "data directory: the path is too long");
    if (mkdir(data_dir, 0700) != 0 && errno != EEXIST)
        return fail_dev_keys(error, data_dir);
    return ensure_dev_private_key(out->private_path, error) && ensure_dev_public_key(out, error);
}
