/*
 * The model of Redis behind a socket, on the real clock, so that what was written for a real server runs against the
 * model: redis-server --port N [--bind ADDRESS] [other options, which are ignored]. It listens on the loopback and ends with
 * SIGTERM.
 */
#include "redis_model/redis_model.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 512, READ_BYTES = 65536, BACKLOG = 128 };

struct client {
    struct redis_session session;
    int fd;
};

struct server {
    struct redis_model model;
    struct client *clients[CLIENTS_MAX];
    size_t count;
    int listener;
};

static int64_t read_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int open_listener(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0) {
        perror("redis-server");
        exit(1);
    }
    return fd;
}

static void accept_client(struct server *server)
{
    int fd = accept(server->listener, NULL, NULL);
    struct client *client = fd < 0 ? NULL : calloc(1, sizeof(*client));
    if (!client || server->count == CLIENTS_MAX) {
        free(client);
        if (fd >= 0)
            close(fd);
        return;
    }
    client->fd = fd;
    redis_session_open(&client->session, &server->model);
    server->clients[server->count++] = client;
}

static void drop_client(struct server *server, size_t at)
{
    struct client *client = server->clients[at];
    redis_session_close(&client->session);
    close(client->fd);
    free(client);
    server->clients[at] = server->clients[--server->count];
}

/* Returns false when the client has gone. */
static bool read_client(struct client *client)
{
    char bytes[READ_BYTES];
    ssize_t len = recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (len <= 0)
        return len < 0 && (errno == EAGAIN || errno == EINTR);
    redis_session_receive(&client->session, (struct slice){bytes, (size_t)len});
    return true;
}

static bool write_client(struct client *client)
{
    struct buffer *out = &client->session.out;
    ssize_t len = out->len ? send(client->fd, out->data, out->len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (len > 0)
        buffer_consume(out, (size_t)len);
    return (len >= 0 || errno == EAGAIN) && !(client->session.is_closing && out->len == 0);
}

static void serve_turn(struct server *server)
{
    struct pollfd fds[CLIENTS_MAX + 1];
    size_t count = server->count;
    fds[count] = (struct pollfd){server->listener, POLLIN, 0};
    for (size_t i = 0; i < count; i++) {
        bool has_output = server->clients[i]->session.out.len > 0;
        fds[i] = (struct pollfd){server->clients[i]->fd,
                                 (short)(POLLIN | (has_output ? POLLOUT : 0)), 0};
    }
    poll(fds, count + 1, -1);
    server->model.now_us = read_wall_us();
    for (size_t i = count; i-- > 0;)
        if (fds[i].revents && !read_client(server->clients[i]))
            drop_client(server, i);
    for (size_t i = server->count; i-- > 0;)
        if (!write_client(server->clients[i]))
            drop_client(server, i);
    if (fds[count].revents)
        accept_client(server);
}

int main(int argc, char **argv)
{
    static struct server server;
    int port = 6379;
    for (int i = 1; i + 1 < argc; i++)
        if (slice_is(slice_of(argv[i]), "--port"))
            port = atoi(argv[i + 1]);
    redis_model_init(&server.model, read_wall_us(), 1);
    server.listener = open_listener(port);
    for (;;)
        serve_turn(&server);
}
