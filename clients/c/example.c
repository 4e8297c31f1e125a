/*
 * A chat in a terminal: an application of a hundred lines.
 *
 *     example [--tls [--ca FILE]] HOST PORT TOKEN CHAT        sends every line you type, prints messages of others
 *
 * At the end of the input it waits for all acknowledgements, then leaves.
 */
#include "rollcall.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096 };

static void on_event(void *arg, const struct rollcall_event *event)
{
    unsigned *unanswered = arg;
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        fprintf(stderr, "-- %s %s\n", rollcall_state_name(event->state), event->text);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        printf("%lld %s: %s\n", (long long)event->sequence, event->user_id, event->body);
        break;
    case ROLLCALL_EVENT_SENT:
        printf("%lld (sent)\n", (long long)event->sequence);
        (*unanswered)--;
        break;
    case ROLLCALL_EVENT_PRESENCE:
        printf("-- %s is %s\n", event->user_id, event->status);
        break;
    case ROLLCALL_EVENT_REFUSED:
        fprintf(stderr, "-- not sent: %s: %s\n", event->code, event->text);
        (*unanswered)--;
        break;
    case ROLLCALL_EVENT_ERROR:
        fprintf(stderr, "-- %s: %s\n", event->code, event->text);
        break;
    case ROLLCALL_EVENT_OTHER:
        break;
    }
    fflush(stdout);
}

/* Returns false at the end of the input. */
static bool send_line(struct rollcall *client, const char *chat, unsigned *unanswered)
{
    char line[LINE_BYTES_MAX + 2];
    if (!fgets(line, sizeof(line), stdin))
        return false;
    line[strcspn(line, "\n")] = '\0';
    if (line[0] && rollcall_send(client, chat, NULL, line))
        (*unanswered)++;
    else if (line[0])
        fprintf(stderr, "-- not sent: the line is too long\n");
    return true;
}

/* Reads the options and moves past them; argv[1] is then the host. */
static void read_flags(int *argc, char ***argv, struct rollcall_options *options)
{
    while (*argc > 1 && (*argv)[1][0] == '-') {
        int used = 1;
        options->tls = true; /* --ca has no use without it */
        if (strcmp((*argv)[1], "--ca") == 0 && *argc > 2) {
            options->ca_file = (*argv)[2];
            used = 2;
        }
        *argc -= used;
        *argv += used;
    }
}

int main(int argc, char **argv)
{
    unsigned unanswered = 0;
    struct rollcall_options options = {
        .device_id = "terminal", .event = on_event, .arg = &unanswered};
    read_flags(&argc, &argv, &options);
    if (argc != 5) {
        fprintf(stderr, "usage: example [--tls [--ca FILE]] HOST PORT TOKEN CHAT\n");
        return 2;
    }
    options.host = argv[1];
    options.port = (uint16_t)strtoul(argv[2], NULL, 10);
    options.token = argv[3];
    struct rollcall *client = rollcall_open(&options);
    if (!client)
        return 1;
    rollcall_follow(client, argv[4], 0);
    rollcall_open_chat(client, argv[4]);
    setvbuf(stdin, NULL, _IONBF, 0); /* poll() does not see what stdio has buffered */
    bool typing = true;
    while (rollcall_get_state(client) != ROLLCALL_STOPPED) {
        bool reads = typing && unanswered < ROLLCALL_OUTBOX_MAX;
        struct pollfd fds[2] = {
            {.fd = rollcall_fd(client), .events = rollcall_poll_events(client)},
            {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN},
        };
        poll(fds, 2, rollcall_wait_ms(client));
        rollcall_process(client, fds[0].revents);
        if (fds[1].revents)
            typing = send_line(client, argv[4], &unanswered);
        if (!typing && unanswered == 0)
            rollcall_close(client);
    }
    rollcall_free(&client);
    return 0;
}
