#include "processes/setup_process.h"

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

/* ---- one HTTP request at a time, on one connection ---- */

struct requester {
    const struct setup *setup;
    int fd; /* -1: not connected */
    char answer[4096];
    size_t len;
};

static bool requester_wait(const struct requester *self, short events)
{
    struct pollfd fd = {.fd = self->fd, .events = events};
    return poll(&fd, 1, ANSWER_MS) > 0;
}

static bool requester_connect(struct requester *self)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(self->setup->port),
                                  .sin_addr.s_addr = htonl(self->setup->address)};
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

/* Tries until the fleet does it, which may not be ready yet. */
static bool requester_post(struct requester *self, const struct user *user, const char *path,
                           const char *body)
{
    struct buffer request = BUFFER_INIT;
    int status = 0;
    buffer_printf(&request,
                  "POST %s HTTP/1.1\r\nHost: sim\r\nAuthorization: Bearer %s\r\n"
                  "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                  path, user->token, strlen(body), body);
    for (int i = 0; i < ATTEMPTS_MAX && (status < 200 || status >= 300); i++) {
        if (i > 0)
            poll(&(struct pollfd){.fd = -1}, 1, RETRY_MS);
        status = requester_try(self, buffer_slice(&request));
        if (status == 0 && self->fd >= 0) {
            close(self->fd);
            self->fd = -1;
        }
    }
    buffer_free(&request);
    return status >= 200 && status < 300;
}

/* ---- what is set up ---- */

static bool setup_contacts(struct requester *requester, const struct population *population,
                           const struct user *user)
{
    char body[64];
    for (size_t i = 0; i < user->contact_count; i++) { /* two requests meet: they are contacts */
        snprintf(body, sizeof(body), "{\"to\":\"%s\"}", population->users[user->contacts[i]].name);
        if (!requester_post(requester, user, "/v1/contact-requests", body))
            return false;
    }
    return true;
}

static bool setup_chat(struct requester *requester, const struct population *population,
                       const struct chat *chat)
{
    struct buffer body = BUFFER_INIT;
    const struct user *creator = NULL;
    buffer_printf(&body, "{\"chat_id\":\"%s\",\"members\":[", chat->id);
    for (size_t i = 0; i < population->user_count; i++) {
        const struct user *user = &population->users[i];
        if (user->chat != chat)
            continue;
        buffer_printf(&body, "%s\"%s\"", creator ? "," : "", user->name);
        creator = user;
    }
    buffer_append(&body, "]}", 3); /* with the end of the text */
    bool done = requester_post(requester, creator, "/v1/chats", body.data);
    buffer_free(&body);
    return done;
}

int setup_run(void *arg)
{
    const struct setup *setup = arg;
    const struct population *population = setup->population;
    struct requester requester = {.setup = setup, .fd = -1};
    bool done = true;
    for (size_t i = 0; i < population->user_count && done; i++)
        done = setup_contacts(&requester, population, &population->users[i]);
    for (size_t i = 0; i < population->chat_count && done; i++)
        done = setup_chat(&requester, population, &population->chats[i]);
    close(requester.fd);
    return done ? 0 : 1;
}
