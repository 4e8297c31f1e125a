#include "app/control/control_socket.h"

#include "base/container.h"
#include "log/log.h"
#include "text/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_QUEUE_MAX = 16, READ_BYTES = 4096 };

/* ---- addresses ---- */

/* A directory's path may be longer than an address holds, so the address leads through an open descriptor. */
static bool write_control_address(const char *directory, struct sockaddr_un *address, int *fd)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return false;
    snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/" CONTROL_SOCKET_NAME,
             *fd);
    return true;
}

/* Returns a connected socket, or -1 with errno. */
static int connect_control_socket(const char *directory)
{
    struct sockaddr_un address;
    int directory_fd;
    if (!write_control_address(directory, &address, &directory_fd))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    close(directory_fd);
    return fd;
}

/* Returns a listening socket; -1: another process has it, or errno says why not. */
static int listen_on_control_socket(const char *directory)
{
    struct sockaddr_un address;
    int directory_fd;
    int other = connect_control_socket(directory);
    if (other >= 0) {
        close(other);
        errno = EADDRINUSE;
        return -1;
    }
    if (!write_control_address(directory, &address, &directory_fd))
        return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    unlink(address.sun_path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(address.sun_path, S_IRUSR | S_IWUSR) != 0 || listen(fd, LISTEN_QUEUE_MAX) != 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        errno = error;
        fd = -1;
    }
    close(directory_fd);
    return fd;
}

/* ---- clients ---- */

static void end_control_client(struct control_client *client)
{
    struct control_socket *control = client->socket;
    if (client->source.fd < 0)
        return;
    loop_remove(control->loop, &client->source);
    close(client->source.fd);
    client->source.fd = -1;
    loop_cancel_timer(control->loop, &client->deadline);
    buffer_free(&client->in);
    buffer_free(&client->out);
    client->written = 0;
}

static void write_control_answer(struct control_client *client)
{
    while (client->written < client->out.len) {
        ssize_t sent = send(client->source.fd, client->out.data + client->written,
                            client->out.len - client->written, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN)
            return;
        if (sent <= 0)
            break;
        client->written += (size_t)sent;
    }
    end_control_client(client);
}

static void on_control_command_done(void *arg, int exit_status, struct slice output,
                                    struct slice error)
{
    struct control_client *client = arg;
    client->running = false;
    if (client->source.fd < 0)
        return;
    json_write_object(&client->out);
    json_write_key_int(&client->out, SLICE("status"), exit_status);
    json_write_key_string(&client->out, SLICE("output"), output);
    json_write_key_string(&client->out, SLICE("error"), error);
    json_write_object_end(&client->out);
    if (client->out.failed)
        end_control_client(client);
    else
        write_control_answer(client);
}

static void run_control_request(struct control_client *client)
{
    struct slice arguments[CONTROL_ARGUMENTS_MAX];
    struct control_socket *control = client->socket;
    struct json json;
    size_t count = 0;
    json_init(&json, client->in.data, client->in.len - 1);
    json_array(&json);
    while (json_element(&json) && count < CONTROL_ARGUMENTS_MAX &&
           json_string(&json, &arguments[count]))
        count++;
    struct control_call call = {.ledger = control->ledger,
                                .random = control->random,
                                .arguments = arguments,
                                .count = count,
                                .done = on_control_command_done,
                                .arg = client};
    client->running = true;
    if (json_done(&json))
        control_call_run(&call);
    else
        control_call_fail(&call, "this is no command");
}

static void on_control_client_ready(struct loop_source *source, uint32_t events)
{
    struct control_client *client = CONTAINER_OF(source, struct control_client, source);
    char bytes[READ_BYTES];
    if (client->out.len && events & EPOLLOUT) {
        write_control_answer(client);
        return;
    }
    for (;;) {
        ssize_t count = recv(source->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count <= 0 || client->in.len + (size_t)count > CONTROL_REQUEST_BYTES_MAX) {
            end_control_client(client);
            return;
        }
        if (client->running || client->out.len)
            continue; /* nothing follows a request */
        buffer_append(&client->in, bytes, (size_t)count);
        if (client->in.failed) {
            end_control_client(client);
            return;
        }
        if (client->in.data[client->in.len - 1] == '\n') {
            run_control_request(client);
            return;
        }
    }
}

static void on_control_client_late(struct wheel_timer *timer)
{
    end_control_client(CONTAINER_OF(timer, struct control_client, deadline));
}

static struct control_client *find_control_place(struct control_socket *control)
{
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
        if (control->clients[i].source.fd < 0 && !control->clients[i].running)
            return &control->clients[i];
    return NULL;
}

static bool is_control_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void on_control_ready(struct loop_source *source, uint32_t events)
{
    (void)events;
    struct control_socket *control = CONTAINER_OF(source, struct control_socket, source);
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct control_client *client = find_control_place(control);
    if (!client || !is_control_user(fd)) {
        close(fd);
        return;
    }
    client->source = (struct loop_source){fd, on_control_client_ready};
    if (!loop_add(control->loop, &client->source)) {
        close(fd);
        client->source.fd = -1;
        return;
    }
    client->deadline.fire = on_control_client_late;
    loop_set_timer(control->loop, &client->deadline,
                   control->loop->clock.now_ms + CONTROL_CLIENT_MS);
}

/* ---- life ---- */

static void try_control_socket(struct wheel_timer *timer)
{
    struct control_socket *control = CONTAINER_OF(timer, struct control_socket, retry);
    control->source =
        (struct loop_source){listen_on_control_socket(control->directory), on_control_ready};
    if (control->source.fd >= 0 && loop_add_level(control->loop, &control->source))
        return;
    if (control->source.fd < 0 && errno != EADDRINUSE)
        log_warn("no_control_socket", "directory=%s error=%s",
                 log_quote(slice_of(control->directory)), log_sentence(slice_of(strerror(errno))));
    if (control->source.fd >= 0)
        close(control->source.fd);
    control->source.fd = -1;
    if (errno == EADDRINUSE)
        loop_set_timer(control->loop, &control->retry,
                       control->loop->clock.now_ms + CONTROL_RETRY_MS);
}

void control_socket_open(struct control_socket *control, struct loop *loop, const char *directory,
                         struct ledger_client *ledger, struct random *random)
{
    *control = (struct control_socket){.loop = loop,
                                       .ledger = ledger,
                                       .random = random,
                                       .retry.fire = try_control_socket,
                                       .is_open = true};
    snprintf(control->directory, sizeof(control->directory), "%s", directory);
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++) {
        control->clients[i].source.fd = -1;
        control->clients[i].socket = control;
    }
    try_control_socket(&control->retry);
}

void control_socket_close(struct control_socket *control)
{
    struct sockaddr_un address;
    int directory_fd;
    if (!control->is_open)
        return;
    control->is_open = false;
    loop_cancel_timer(control->loop, &control->retry);
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
        end_control_client(&control->clients[i]);
    if (control->source.fd < 0)
        return;
    if (write_control_address(control->directory, &address, &directory_fd)) {
        unlink(address.sun_path);
        close(directory_fd);
    }
    loop_remove(control->loop, &control->source);
    close(control->source.fd);
    control->source.fd = -1;
}

/* ---- asking ---- */

static bool send_control_request(int fd, const struct slice *arguments, size_t count)
{
    struct buffer out = BUFFER_INIT;
    json_write_array(&out);
    for (size_t i = 0; i < count; i++)
        json_write_string(&out, arguments[i]);
    json_write_array_end(&out);
    buffer_append_byte(&out, '\n');
    bool sent = !out.failed && send(fd, out.data, out.len, MSG_NOSIGNAL) == (ssize_t)out.len;
    buffer_free(&out);
    return sent;
}

static void read_control_answer(int fd, struct buffer *in)
{
    char bytes[READ_BYTES];
    ssize_t count;
    while ((count = recv(fd, bytes, sizeof(bytes), 0)) > 0)
        buffer_append(in, bytes, (size_t)count);
}

static int print_control_answer(struct buffer *in, const char *command)
{
    struct slice key, output = SLICE_NONE, error = SLICE_NONE;
    int64_t status = 1;
    struct json json;
    json_init(&json, in->data, in->len);
    if (in->len)
        json_object(&json);
    while (in->len && json_member(&json, &key)) {
        if (slice_is(key, "status"))
            json_int(&json, &status);
        else if (slice_is(key, "output"))
            json_string(&json, &output);
        else if (slice_is(key, "error"))
            json_string(&json, &error);
        else
            json_skip(&json);
    }
    if (in->failed || !in->len || !json_done(&json)) {
        error = SLICE("the server gave no answer");
        status = 1;
    }
    printf("%.*s", SLICE_FORMAT(output));
    if (error.len)
        fprintf(stderr, "rollcall %s: %.*s\n", command, SLICE_FORMAT(error));
    return (int)status;
}

bool control_socket_ask(const char *directory, const struct slice *arguments, size_t count,
                        const char *command, int *exit_status)
{
    struct timeval limit = {.tv_sec = CONTROL_CLIENT_MS / 1000};
    struct buffer in = BUFFER_INIT;
    int fd = connect_control_socket(directory);
    if (fd < 0)
        return false;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (send_control_request(fd, arguments, count))
        read_control_answer(fd, &in);
    close(fd);
    *exit_status = print_control_answer(&in, command);
    buffer_free(&in);
    return true;
}
