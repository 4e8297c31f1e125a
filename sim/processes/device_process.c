#include "processes/device_process.h"

#include "base/container.h"
#include "invariants/invariants.h"
#include "rollcall.h"
#include "world/trace.h"
#include "world/world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ACTION_US_MEAN = 30 * 1000 * 1000,
    AWAY_US_MAX = 90 * 1000 * 1000,
    FIRST_ACTION_US_MAX = 10 * 1000 * 1000,
};

/* The library's callbacks get the device alone, and there is one world. */
static struct world *device_world;

/* ---- what the library reports ---- */

static void on_device_state(struct device *device, const struct rollcall_event *event)
{
    bool connected = event->state == ROLLCALL_SYNCING || event->state == ROLLCALL_READY;
    if (device->is_connected != connected)
        trace_line("%s %s %s %s", device->name, rollcall_state_name(event->state), event->code,
                   event->text);
    device->user->changed_us = kernel_now_us(); /* the server may know before the client */
    device_set_connected(device, connected);
    if (connected)
        return;
    /* A new connection is told of a call that is still there, and answers nothing that was asked before. */
    device_set_call(device, CALL_NONE, "");
    memset(device->requests, 0, sizeof(device->requests));
    for (size_t i = 0; i < POPULATION_CONTACTS; i++)
        device->told[i].pushed_version = 0;
}

/* ---- calls ---- */

/* Some let it ring. */
static void device_decide_call(struct device *device, const char *call_id)
{
    uint64_t drawn = random_below(&device->random, 100);
    device->answer = drawn < 60 ? ANSWER_ACCEPT : drawn < 80 ? ANSWER_REJECT : ANSWER_NOTHING;
    device_set_call(device, device->answer == ANSWER_REJECT ? CALL_NONE : CALL_RINGING, call_id);
}

/* In the device's own process: the library draws random numbers and allocates. */
static void device_answer_call(struct device *device, const char *call_id)
{
    enum call_answer answer = device->answer;
    device->answer = ANSWER_NOTHING;
    if (answer == ANSWER_ACCEPT)
        rollcall_call_accept(device->client, call_id);
    else if (answer == ANSWER_REJECT)
        rollcall_call_reject(device->client, call_id);
}

/* It is over when the server says so. */
static void device_end_call(struct device *device)
{
    if (device->call != CALL_NONE && rollcall_call_end(device->client, device->call_id))
        device_set_call(device, CALL_ENDING, device->call_id);
}

static bool is_temporary(const char *code)
{
    return strcmp(code, "SERVICE_UNAVAILABLE") == 0 || strcmp(code, "SERVER_BUSY") == 0 ||
           strcmp(code, "RATE_LIMITED") == 0;
}

/* An answer to what the device asked, or the state that a push names. */
static enum call_phase device_next_phase(const struct device *device,
                                         const struct rollcall_event *event)
{
    if (event->type == ROLLCALL_EVENT_ERROR &&
        is_temporary(event->code)) /* it may ring all the same */
        return device->call == CALL_CALLING ? CALL_ENDING : device->call;
    if (event->type == ROLLCALL_EVENT_ERROR)
        return CALL_NONE;
    if (strcmp(event->name, "ok") == 0)
        return device->call == CALL_RINGING ? CALL_TALKING : CALL_NONE;
    if (strcmp(event->name, "call_ringing") == 0)
        return CALL_CALLING;
    if (strcmp(event->name, "call_accepted") == 0) /* where it rings, another device has it */
        return device->call == CALL_RINGING ? CALL_NONE : CALL_TALKING;
    if (strcmp(event->name, "call_ended") == 0 || strcmp(event->name, "call_rejected") == 0)
        return CALL_NONE;
    return device->call;
}

/* What the server says of a call, also again after a reconnect. */
static void on_device_call(struct device *device, const struct rollcall_event *event)
{
    bool is_ours = device->call != CALL_NONE && strcmp(device->call_id, event->call_id) == 0;
    trace_line("%s %s %s %s", device->name, event->name, event->call_id, event->code);
    if (strcmp(event->name, "call_incoming") == 0 && device->call == CALL_NONE)
        device_decide_call(device, event->call_id);
    else if (is_ours)
        device_set_call(device, device_next_phase(device, event), event->call_id);
    else if (device->call == CALL_NONE && (strcmp(event->name, "call_ringing") == 0 ||
                                           strcmp(event->name, "call_accepted") == 0))
        device_set_call(device, device_next_phase(device, event), event->call_id);
}

static void device_call(struct device *device)
{
    const struct population *population = &device_world->population;
    const struct user *user = device->user;
    char id[POPULATION_CALL_BYTES];
    if (device->call != CALL_NONE) {
        device_end_call(device);
        return;
    }
    const struct user *to =
        &population->users[user->contacts[random_below(&device->random, user->contact_count)]];
    snprintf(id, sizeof(id), "call-%s-%u", device->name, device->calls_count++);
    if (!rollcall_call_request(device->client, to->name, id))
        return;
    device_world->counts.calls++;
    device_set_call(device, CALL_CALLING, id);
}

/* ---- requests with an id ---- */

static void device_ask(struct device *device)
{
    char json[128];
    size_t free_at = 0;
    while (free_at < POPULATION_REQUESTS_MAX && device->requests[free_at].id)
        free_at++;
    if (free_at == POPULATION_REQUESTS_MAX || !device->is_connected)
        return;
    unsigned id = ++device->requests_count;
    snprintf(json, sizeof(json),
             "{\"type\":\"unsubscribe_presence\",\"user_ids\":[\"nobody-%u\"],\"id\":\"sim-%u\"}",
             id, id);
    if (rollcall_command(device->client, json))
        device->requests[free_at] = (struct request){id, kernel_now_us()};
}

static void on_device_other(struct device *device, const struct rollcall_event *event)
{
    const char *id = strstr(event->json, "\"id\":\"sim-");
    if (id)
        invariants_on_answer(device_world, device, (unsigned)strtoul(id + 10, NULL, 10));
    else if (*event->call_id)
        on_device_call(device, event);
}

static void on_device_event(void *arg, const struct rollcall_event *event)
{
    struct device *device = arg;
    struct thread *thread = kernel_enter();
    switch (event->type) {
    case ROLLCALL_EVENT_STATE:
        on_device_state(device, event);
        break;
    case ROLLCALL_EVENT_PRESENCE:
        invariants_on_presence(device_world, device, event);
        break;
    case ROLLCALL_EVENT_SENT:
        invariants_on_acknowledged(device_world, device, event);
        break;
    case ROLLCALL_EVENT_MESSAGE:
        invariants_on_message(device_world, device, event);
        break;
    case ROLLCALL_EVENT_REFUSED:
        invariants_on_refused(device_world, device, event);
        break;
    default: /* errors too: each answers something */
        on_device_other(device, event);
    }
    kernel_leave(thread);
    device_answer_call(device, event->call_id);
}

/* ---- what the application does ---- */

static void device_send(struct device *device)
{
    char text[64];
    snprintf(text, sizeof(text), "%s-%u-%u", device->name, device->incarnation,
             device->sent_count++);
    device->unanswered_count += rollcall_send(device->client, device->user->chat->id, text, text);
}

/* Returns false: the user closes the application. */
static bool device_act(struct device *device)
{
    device->next_action_us =
        kernel_now_us() + (int64_t)random_below(&device->random, (uint64_t)ACTION_US_MEAN * 2);
    if (device_world->is_quiet) {
        if (device->call >= CALL_TALKING) /* what rings ends by itself */
            device_end_call(device);
        return true;
    }
    uint64_t drawn = random_below(&device->random, 110);
    if (drawn >= 105)
        device_ask(device);
    else if (drawn >= 100 || device->call >= CALL_TALKING)
        device_call(device);
    else if (drawn < 55)
        device_send(device);
    else if (drawn < 70)
        rollcall_set_active(device->client, random_below(&device->random, 2));
    else if (drawn < 85)
        rollcall_typing(device->client, device->user->chat->id, true);
    else if (drawn < 92)
        return false;
    return true;
}

static void device_open(struct device *device)
{
    const struct population *population = &device_world->population;
    struct rollcall_options options = {
        .host = WORLD_BALANCER_HOST,
        .port = WORLD_CLIENT_PORT,
        .token = device->user->token,
        .device_id = device->name,
        .event = on_device_event,
        .arg = device,
    };
    device->client = rollcall_open(&options);
    rollcall_follow(device->client, device->user->chat->id, device->last_sequence);
    for (size_t i = 0; i < device->user->contact_count; i++)
        rollcall_subscribe(device->client, population->users[device->user->contacts[i]].name);
    rollcall_subscribe(device->client, population_other_person(population, device->user)->name);
    rollcall_open_chat(device->client, device->user->chat->id);
}

static int device_wait_ms(const struct device *device)
{
    int wait_ms = rollcall_wait_ms(device->client);
    int64_t action_ms = (device->next_action_us - kernel_now_us()) / 1000 + 1;
    if (action_ms < 0)
        action_ms = 0;
    return wait_ms < 0 || action_ms < wait_ms ? (int)action_ms : wait_ms;
}

static int run_device(void *arg)
{
    struct device *device = arg;
    device_open(device);
    device->next_action_us =
        kernel_now_us() + (int64_t)random_below(&device->random, FIRST_ACTION_US_MAX);
    while (rollcall_get_state(device->client) != ROLLCALL_STOPPED) {
        struct pollfd fd = {.fd = rollcall_fd(device->client),
                            .events = rollcall_poll_events(device->client)};
        poll(&fd, 1, device_wait_ms(device));
        rollcall_process(device->client, fd.revents);
        if (kernel_now_us() >= device->next_action_us && !device_act(device)) {
            rollcall_close(device->client);
            device->user->changed_us = kernel_now_us();
        }
    }
    rollcall_free(&device->client);
    return 0;
}

/* ---- life ---- */

static void device_stop(struct device *device)
{
    device->process = NULL;
    device->client = NULL;
    device->user->changed_us = kernel_now_us();
    device_set_connected(device, false);
    device_set_call(device, CALL_NONE, "");
    memset(device->requests, 0, sizeof(device->requests));
}

static void on_device_ended(struct process *process, void *arg)
{
    struct device *device = arg;
    trace_line("%s ended", device->name);
    invariants_on_exit(device_world, process);
    device_stop(device);
    if (!device->stays_away)
        device_start_within(device_world, device, AWAY_US_MAX);
}

static void on_device_return(struct event *event)
{
    struct device *device = CONTAINER_OF(event, struct device, return_event);
    device->machine->is_off = false;
    device->incarnation++;
    device->unanswered_count = 0;
    memset(device->told, 0, sizeof(device->told));
    device->process = process_start(device->machine, device->name, run_device, device);
    device->process->on_end = on_device_ended;
    device->process->on_end_arg = device;
}

void device_start_within(struct world *world, struct device *device, int64_t within_us)
{
    device_world = world;
    device->return_event.run = on_device_return;
    kernel_set_event(&device->return_event,
                     1 + (int64_t)random_below(&device->random, (uint64_t)within_us));
}

void device_crash(struct device *device, bool lost_power)
{
    if (!device->process)
        return;
    device->machine->is_off = lost_power;
    device->process->on_end = NULL;
    process_crash(&device->process);
    device_stop(device);
    device_start_within(device_world, device, AWAY_US_MAX);
}
