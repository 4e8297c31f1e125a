#include "issuer/kept_set.h"

#include "issuer/issuer.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

bool kept_set_read(const char *path, struct buffer *text, int64_t *written_at_wall_ms)
{
    char piece[4096];
    struct stat status;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    while (text->len <= ISSUER_SET_BYTES_MAX && (got = read(fd, piece, sizeof(piece))) > 0)
        buffer_append(text, piece, (size_t)got);
    bool whole = got == 0 && !text->failed && fstat(fd, &status) == 0;
    if (whole)
        *written_at_wall_ms = (int64_t)status.st_mtime * 1000;
    else
        buffer_clear(text);
    close(fd);
    return whole;
}

bool kept_set_write(const char *path, struct slice text)
{
    char temporary[PATH_MAX];
    int len = snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
    if (len < 0 || (size_t)len >= sizeof(temporary))
        return false;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = write(fd, text.data, text.len) == (ssize_t)text.len && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return true;
    unlink(temporary);
    return false;
}
