/*
 * A client for tests. It sends numbered messages to a chat, one after the other, until it reads a line; it ends
 * when its input ends. It prints its events: "A sequence" for an acknowledgement, "R code" for a refusal,
 * "M sequence sender body" for a message, "S state" for a change of state.
 *
 *     storm HOST PORT TOKEN CHAT NAME
 */
#include "rollcall.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HURRY = 100 };

struct storm {
    struct rollcall *client;
    const char *chat;
    const char *name;
    unsigned next;
    bool waiting; /* for an acknowledgement */
    bool ended;
};

static void on_event(void *arg, const struct rollcall_event *event)
{
    struct storm *storm = arg;
    if (event->type == ROLLCALL_EVENT_STATE) {
        printf("S %s\n", rollcall_state_name(event->state));
    } else if (event->type == ROLLCALL_EVENT_MESSAGE) {
        printf("M %lld %s %s\n", (long long)event->sequence, event->user_id, event->body);
    } else if (event->type == ROLLCALL_EVENT_SENT) {
        printf("A %lld\n", (long long)event->sequence);
        storm->waiting = false;
    } else if (event->type == ROLLCALL_EVENT_REFUSED) {
        printf("R %s\n", event->code);
        storm->waiting = false;
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct storm storm = {.chat = argc > 4 ? argv[4] : "", .name = argc > 5 ? argv[5] : ""};
    if (argc != 6)
        return 2;
    struct rollcall_options options = {.host = argv[1],
                                       .port = (uint16_t)strtoul(argv[2], NULL, 10),
                                       .token = argv[3],
                                       .device_id = "storm",
                                       .event = on_event,
                                       .arg = &storm,
                                       .hurry = HURRY};
    storm.client = rollcall_open(&options);
    if (!storm.client)
        return 1;
    rollcall_follow(storm.client, storm.chat, 0);
    for (;;) {
        char ignored[64];
        struct pollfd fds[2] = {
            {.fd = rollcall_fd(storm.client), .events = rollcall_poll_events(storm.client)},
            {.fd = STDIN_FILENO, .events = POLLIN},
        };
        if (!storm.waiting && !storm.ended) {
            char body[128];
            snprintf(body, sizeof(body), "%s %u", storm.name, storm.next++);
            storm.waiting = rollcall_send(storm.client, storm.chat, NULL, body);
        }
        poll(fds, 2, rollcall_wait_ms(storm.client));
        rollcall_process(storm.client, fds[0].revents);
        if (!fds[1].revents)
            continue;
        storm.ended = true;
        if (read(STDIN_FILENO, ignored, sizeof(ignored)) <= 0)
            break;
    }
    rollcall_free(&storm.client);
    return 0;
}
