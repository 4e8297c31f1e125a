#include "processes/redis_process.h"

#include "base/container.h"
#include "net/listener.h"
#include "net/stream.h"

#include <stdio.h>
#include <stdlib.h>

/* A client of the server. What the model has of it is the simulator's memory; the stream is the process's. */
struct redis_connection_end {
    struct stream stream;
    struct list place;
    struct redis_session *session;
};

struct redis_main {
    struct redis_server *server;
    struct loop loop;
    struct stream_set streams;
    struct listener listener;
    struct list ends;
};

static struct redis_main *redis_main_of(const struct stream *stream)
{
    return CONTAINER_OF(stream->set, struct redis_main, streams);
}

/* A command may have pushed something to other clients. */
static void redis_write_replies(struct redis_main *self)
{
    for (struct list *at = self->ends.next; at != &self->ends; at = at->next) {
        struct redis_connection_end *end = CONTAINER_OF(at, struct redis_connection_end, place);
        if (end->session->out.len > 0)
            stream_want_write(&end->stream);
    }
}

static void on_redis_commands(struct stream *stream, char *data, size_t len)
{
    struct redis_connection_end *end = CONTAINER_OF(stream, struct redis_connection_end, stream);
    struct redis_main *self = redis_main_of(stream);
    struct redis_model *model = &self->server->model;
    struct thread *thread = kernel_enter();
    model->now_us = machine_wall_us(self->server->machine);
    redis_session_receive(end->session, (struct slice){data, len});
    kernel_leave(thread);
    redis_write_replies(self);
    if (end->session->is_closing && end->session->out.len == 0)
        stream_close(stream);
}

static void on_redis_client_ended(struct stream *stream)
{
    stream_close(stream);
}

static size_t gather_redis_replies(struct stream *stream, struct iovec *out, size_t max)
{
    struct redis_connection_end *end = CONTAINER_OF(stream, struct redis_connection_end, stream);
    (void)max;
    *out = (struct iovec){end->session->out.data, end->session->out.len};
    return out->iov_len > 0;
}

static bool on_redis_replies_sent(struct stream *stream, size_t bytes)
{
    struct redis_connection_end *end = CONTAINER_OF(stream, struct redis_connection_end, stream);
    struct thread *thread = kernel_enter();
    buffer_consume(&end->session->out, bytes);
    kernel_leave(thread);
    return end->session->out.len > 0;
}

static void close_redis_session(struct redis_session *session)
{
    struct thread *thread = kernel_enter();
    redis_session_close(session);
    free(session);
    kernel_leave(thread);
}

static void on_redis_client_closed(struct stream *stream)
{
    struct redis_connection_end *end = CONTAINER_OF(stream, struct redis_connection_end, stream);
    list_remove(&end->place);
    close_redis_session(end->session);
    free(end);
}

static const struct stream_owner OWNER = {.on_bytes = on_redis_commands,
                                          .on_ended = on_redis_client_ended,
                                          .gather = gather_redis_replies,
                                          .on_sent = on_redis_replies_sent,
                                          .on_closed = on_redis_client_closed};

static void on_redis_client_accepted(void *arg, int fd)
{
    struct redis_main *self = arg;
    struct redis_connection_end *end = calloc(1, sizeof(*end));
    struct thread *thread = kernel_enter();
    end->session = calloc(1, sizeof(*end->session));
    redis_session_open(end->session, &self->server->model);
    kernel_leave(thread);
    list_append(&self->ends, &end->place);
    if (!stream_open(&end->stream, &self->streams, &OWNER, fd, NULL))
        abort();
}

static int run_redis(void *arg)
{
    struct redis_main *self = calloc(1, sizeof(*self));
    struct listener_options options = {.accept_queue_max = 128};
    char error[LISTENER_ERROR_TEXT_MAX];
    self->server = arg;
    list_init(&self->ends);
    options.address = self->server->listen;
    if (!loop_init(&self->loop) || !stream_set_init(&self->streams, &self->loop) ||
        !listener_open(&self->listener, &self->loop, &options, on_redis_client_accepted, self,
                       error))
        abort();
    loop_run(&self->loop);
    return 0;
}

static void redis_run_command(struct redis_model *model, const char *command)
{
    struct redis_session session = {0};
    redis_session_open(&session, model);
    redis_session_receive(&session, slice_of(command));
    redis_session_close(&session);
}

void redis_server_init(struct redis_server *server, struct machine *machine, const char *listen)
{
    *server = (struct redis_server){.machine = machine};
    snprintf(server->listen, sizeof(server->listen), "%s", listen);
    redis_model_init(&server->model, machine_wall_us(machine), random_u64(kernel_random()));
}

static void redis_server_drop_replica(struct redis_server *server)
{
    if (server->has_replica)
        redis_model_free(&server->replica);
    server->has_replica = false;
}

void redis_server_fall_behind(struct redis_server *server)
{
    redis_server_drop_replica(server);
    redis_model_init(&server->replica, server->model.now_us, server->model.random);
    redis_model_copy(&server->replica, &server->model);
    server->has_replica = true;
}

void redis_server_fail_over(struct redis_server *server, struct redis_server *other)
{
    if (!server->has_replica)
        return;
    redis_server_crash(server);
    redis_server_crash(other);
    redis_model_clear(&other->model);
    redis_model_copy(&other->model, &server->replica);
    other->model.replication_id = server->model.replication_id; /* the start makes it a new one */
    redis_server_drop_replica(server);
    redis_server_start(other, false);
}

void redis_server_free(struct redis_server *server)
{
    redis_server_drop_replica(server);
    redis_model_free(&server->model);
}

/* The clients' sessions end with the process. */
void redis_server_crash(struct redis_server *server)
{
    struct list *sessions = &server->model.sessions;
    if (!server->process)
        return;
    process_crash(&server->process);
    while (!list_empty(sessions))
        close_redis_session(CONTAINER_OF(sessions->next, struct redis_session, place));
}

void redis_server_start(struct redis_server *server, bool empty)
{
    if (empty)
        redis_model_clear(&server->model);
    else
        redis_run_command(&server->model, "*2\r\n$6\r\nSCRIPT\r\n$5\r\nFLUSH\r\n");
    server->model.replication_id++;
    server->process = process_start(server->machine, server->machine->name, run_redis, server);
}
