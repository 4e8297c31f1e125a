#include "aws/aws_file.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

bool aws_file_read(const char *path, struct buffer *text)
{
    struct stat status;
    /* a named pipe must not hold up the loop */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    size_t before = text->len;
    ssize_t got = -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size <= AWS_FILE_BYTES_MAX && buffer_reserve(text, (size_t)status.st_size + 1))
        got = read(fd, text->data + before, (size_t)status.st_size);
    if (got > 0)
        text->len = before + (size_t)got;
    close(fd);
    return got >= 0;
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

struct slice aws_trim(struct slice text)
{
    while (text.len && is_blank(text.data[0]))
        text = slice_after(text, 1);
    while (text.len && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

void aws_wipe(struct buffer *secret)
{
    if (secret->data)
        OPENSSL_cleanse(secret->data, secret->cap);
    buffer_free(secret);
}
