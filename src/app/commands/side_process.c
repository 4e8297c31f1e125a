#include "app/commands/side_process.h"

#include "base/container.h"
#include "log/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool side_process_fail(const struct side_process *process, const char *what, const char *why)
{
    fprintf(stderr, "rollcall %s: %s: %s\n", process->command, what, why);
    return false;
}

static void on_side_process_signal(struct loop_source *source, uint32_t events)
{
    struct side_process *process = CONTAINER_OF(source, struct side_process, signals);
    struct signalfd_siginfo info;
    (void)events;
    if (read(source->fd, &info, sizeof(info)) != sizeof(info))
        return;
    if (process->is_draining)
        _exit(SIDE_PROCESS_EXIT_FAILED);
    process->is_draining = true;
}

static bool receive_side_process_signals(struct side_process *process)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    process->signals.fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    process->signals.on_ready = on_side_process_signal;
    return (process->signals.fd >= 0 && loop_add_level(&process->loop, &process->signals)) ||
           side_process_fail(process, "start", "cannot create a signalfd");
}

bool side_process_init(struct side_process *process, const char *command,
                       const struct config *config)
{
    process->command = command;
    process->config = config;
    process->signals.fd = -1;
    log_init(config->log.level, getenv("JOURNAL_STREAM") != NULL);
    random_init_system(&process->random);
    if (!loop_init(&process->loop) || !stream_set_init(&process->streams, &process->loop))
        return side_process_fail(process, "start", "out of memory or descriptors");
    return receive_side_process_signals(process);
}

bool side_process_serve_pages(struct side_process *process, const char *setting,
                              const char *address, const char *(*unready)(void *arg),
                              void (*write_metrics)(void *arg, struct buffer *out), void *arg)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    struct process_pages_options options = {
        .loop = &process->loop,
        .streams = &process->streams,
        .config = process->config,
        .unready = unready,
        .write_metrics = write_metrics,
        .arg = arg,
    };
    if (!address[0])
        return true;
    process->pages = process_pages_open(&options, address, error);
    return process->pages || side_process_fail(process, setting, error);
}

void side_process_print_address(const char *what, const char *listen, unsigned port)
{
    printf("rollcall: %s%.*s:%u\n", what, (int)(strrchr(listen, ':') - listen), listen, port);
}

void side_process_run(struct side_process *process)
{
    while (!process->is_draining)
        loop_turn(&process->loop, -1);
}

void side_process_drain_pages(struct side_process *process)
{
    if (process->pages)
        process_pages_drain(process->pages);
}

void side_process_end_pages(struct side_process *process)
{
    if (process->pages)
        process_pages_end(process->pages);
    while (process->pages && !process_pages_is_ended(process->pages))
        loop_turn(&process->loop, -1);
    process_pages_free(&process->pages);
}

void side_process_free(struct side_process *process)
{
    process_pages_free(&process->pages);
    if (process->streams.loop)
        stream_set_free(&process->streams);
    if (process->signals.fd >= 0)
        close(process->signals.fd);
    if (process->loop.read_buffer)
        loop_free(&process->loop);
}
