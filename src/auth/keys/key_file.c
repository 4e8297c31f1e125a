#include "auth/keys/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads up to `size` bytes or to the end. Returns -1 on an error. */
static ssize_t read_key_bytes(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(fd, out + len, size - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static bool read_open_key_file(int fd, const char *path, struct key_file *file,
                               struct auth_error *error)
{
    ssize_t len = read_key_bytes(fd, file->data, KEY_FILE_BYTES_MAX + 1);
    if (len < 0)
        return auth_error_set(error, "%s: %s", path, strerror(errno));
    file->len = (size_t)len;
    if (len == 0)
        return auth_error_set(error, "%s: is empty, expected keys in PEM or JWKS", path);
    if (len > KEY_FILE_BYTES_MAX)
        return auth_error_set(error, "%s: is longer than %d bytes, too long for a key file", path,
                              KEY_FILE_BYTES_MAX);
    file->data[len] = '\0';
    return true;
}

bool key_file_read(const char *path, struct key_file *file, struct auth_error *error)
{
    *file = (struct key_file){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return auth_error_set(error, "%s: %s", path, strerror(errno));
    file->data = malloc(KEY_FILE_BYTES_MAX + 2);
    bool ok = file->data ? read_open_key_file(fd, path, file, error)
                         : auth_error_set(error, "%s: out of memory", path);
    close(fd);
    if (!ok)
        key_file_free(file);
    return ok;
}

void key_file_free(struct key_file *file)
{
    if (file->data)
        OPENSSL_cleanse(file->data, file->len);
    free(file->data);
    *file = (struct key_file){0};
}
