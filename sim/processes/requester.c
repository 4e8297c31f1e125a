#include "processes/requester.h"

#include "base/buffer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RETRY_MS = 500, ANSWER_MS = 10000, ATTEMPTS_MAX = 200 };

static bool requester_wait(const struct requester *self, short events)
{
    struct pollfd fd = {.fd = self->fd, .events = events};
    return poll(&fd, 1, ANSWER_MS) > 0;
}

static bool requester_connect(struct requester *self)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(self->port),
                                  .sin_addr.s_addr = htonl(self->address)};
    if (self->fd >= 0)
        return true;
    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (connect(self->fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
        (errno == EINPROGRESS && requester_wait(self, POLLOUT)))
        return true;
    return false;
}

static bool requester_has_answer(const struct requester *self)
{
    const char *end = memmem(self->answer, self->len, "\r\n\r\n", 4);
    const char *length = end ? strcasestr(self->answer, "content-length:") : NULL;
    size_t body = length ? strtoul(length + 15, NULL, 10) : 0;
    return end && (size_t)(end + 4 - self->answer) + body <= self->len;
}

/* Returns the status; 0: the connection is of no use any more. */
static int requester_try(struct requester *self, struct slice request)
{
    if (!requester_connect(self) ||
        send(self->fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
        return 0;
    self->len = 0;
    while (!requester_has_answer(self)) {
        if (!requester_wait(self, POLLIN))
            return 0;
        ssize_t got =
            recv(self->fd, self->answer + self->len, sizeof(self->answer) - 1 - self->len, 0);
        if (got <= 0)
            return 0;
        self->len += (size_t)got;
        self->answer[self->len] = '\0';
    }
    return (int)strtol(self->answer + sizeof("HTTP/1.1"), NULL, 10);
}

void requester_close(struct requester *self)
{
    if (self->fd >= 0)
        close(self->fd);
    self->fd = -1;
}

/* A fleet that is not ready, or has lost something, does it later. */
static bool requester_is_done(int status)
{
    return status >= 200 && status < 500 && status != 429;
}

bool requester_ask(struct requester *self, const struct user *user, const char *method,
                   const char *path, const char *body)
{
    struct buffer request = BUFFER_INIT;
    int status = 0;
    buffer_printf(&request,
                  "%s %s HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer %s\r\n"
                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  method, path, user->token, strlen(body), body);
    for (int i = 0; i < ATTEMPTS_MAX && !requester_is_done(status); i++) {
        if (i > 0)
            poll(&(struct pollfd){.fd = -1}, 1, RETRY_MS);
        status = requester_try(self, buffer_slice(&request));
        if (status == 0)
            requester_close(self);
    }
    buffer_free(&request);
    return status >= 200 && status < 300;
}
