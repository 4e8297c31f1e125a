/*
 * Typing against a model: users act at random, in any order. Everybody who has the chat open sees who types as
 * soon as nothing changes, and at the end nobody is shown as typing.
 */
#include "support/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum {
    PEOPLE = 5,
    STEPS = 1500,
    TTL_MS = 5000,
    INTERVAL_MS = 1000,
    SETTLED_MS = 600, /* five changes at once take two periods; plus a reserve */
};

static const char *const NAMES[PEOPLE] = {"ann", "ben", "cat", "dan", "eve"};

/* A user with one device: what the user does and what the device shows of the others. */
struct person {
    struct client client;
    bool has_open;
    bool shows;             /* visible to everybody; else to nobody */
    bool shown_when_read;   /* `shows` at the last update that was accepted */
    int64_t accepted_at_ms; /* the last update */
    int64_t types_until_ms;
    bool sees_typing[PEOPLE]; /* as the device shows them */
};

static struct world world;
static struct person people[PEOPLE];

static void send_command(struct person *person, const char *type)
{
    char json[128];
    snprintf(json, sizeof(json), "{\"type\":\"%s\",\"chat_id\":\"team\"}", type);
    client_send(&person->client, json);
}

static int typing_user_index(const char *text)
{
    for (int i = 0; i < PEOPLE; i++) {
        char piece[32];
        snprintf(piece, sizeof(piece), "\"user_id\":\"%s\"", NAMES[i]);
        if (strstr(text, piece))
            return i;
    }
    fail_msg("no user in %s", text);
    return -1;
}

static void receive_snapshot(struct person *person, const char *text)
{
    const char *typing = strstr(text, "\"typing\":[");
    assert_non_null(typing);
    for (int i = 0; i < PEOPLE; i++) {
        char piece[16];
        snprintf(piece, sizeof(piece), "\"%s\"", NAMES[i]);
        const char *found = strstr(typing, piece);
        person->sees_typing[i] = found && found < strchr(typing, ']');
    }
}

/* Reads all messages and skips those that are not about typing. */
static void receive(struct person *person)
{
    while (client_next(&person->client) == CLIENT_TEXT) {
        const char *text = person->client.text;
        if (client_has(&person->client, "\"type\":\"chat_snapshot\""))
            receive_snapshot(person, text);
        else if (client_has(&person->client, "\"type\":\"typing_changed\"")) {
            assert_true(person->has_open);
            int typer = typing_user_index(text);
            bool typing = client_has(&person->client, "\"typing\":true");
            assert_true(&people[typer] != person);
            person->sees_typing[typer] = typing;
        }
    }
}

static void receive_all(void)
{
    for (int i = 0; i < PEOPLE; i++)
        receive(&people[i]);
}

static void check(void)
{
    world_advance(&world, SETTLED_MS);
    receive_all();
    int64_t now_ms = world_now(&world);
    for (int i = 0; i < PEOPLE; i++)
        for (int j = 0; j < PEOPLE && people[i].has_open; j++) {
            bool types = j != i && people[j].types_until_ms > now_ms && people[j].shown_when_read;
            if (people[i].sees_typing[j] != types)
                fail_msg("%s sees that %s %s", NAMES[i], NAMES[j],
                         types ? "does not type" : "types");
        }
}

/* ---- actions ---- */

static void start(struct person *person)
{
    int64_t now_ms = world_now(&world);
    send_command(person, "typing_start");
    if (now_ms - person->accepted_at_ms < INTERVAL_MS)
        return;
    person->accepted_at_ms = now_ms;
    person->types_until_ms = now_ms + TTL_MS;
    person->shown_when_read = person->shows;
}

static void stop(struct person *person)
{
    send_command(person, "typing_stop");
    person->types_until_ms = 0;
}

/* A snapshot decides privacy again and may show less than before, so the model opens no chat then. */
static void open_chat(struct person *person)
{
    for (int i = 0; i < PEOPLE; i++)
        if (people[i].shown_when_read != people[i].shows)
            return;
    send_command(person, "open_chat");
    person->has_open = true;
    receive(person);
}

static void close_chat(struct person *person)
{
    receive(person);
    send_command(person, "close_chat");
    person->has_open = false;
    person->types_until_ms = 0;
    memset(person->sees_typing, 0, sizeof(person->sees_typing));
    receive(person);
}

static void reconnect(struct person *person, const char *name)
{
    client_hang_up(&person->client);
    world_settle(&world);
    person->has_open = false;
    person->types_until_ms = 0;
    memset(person->sees_typing, 0, sizeof(person->sees_typing));
    client_connect(&person->client, &world, name);
}

static void set_shows(struct person *person, const char *name, bool shows)
{
    enum ledger_visibility visibility = shows ? LEDGER_VISIBLE_EVERYONE : LEDGER_VISIBLE_NOBODY;
    person->shows = shows;
    fake_ledger_show(&world.ledger, name, visibility, visibility);
    graph_reader_drop(&world.presence->graphs, slice_of(name));
    if (person->types_until_ms <= world_now(&world))
        person->shown_when_read = shows;
}

static void step(struct random *random)
{
    int index = (int)random_below(random, PEOPLE);
    struct person *person = &people[index];
    switch (random_below(random, 12)) {
    case 0:
        open_chat(person);
        break;
    case 1:
        close_chat(person);
        break;
    case 2:
        reconnect(person, NAMES[index]);
        break;
    case 3:
        set_shows(person, NAMES[index], random_below(random, 4) != 0);
        break;
    case 4:
    case 5:
        stop(person);
        break;
    default:
        start(person);
        break;
    }
    if (random_below(random, 3) == 0)
        world_advance(&world, (int64_t)random_below(random, 700));
}

static void every_viewer_sees_who_types_once_nothing_changes(void **unused)
{
    (void)unused;
    struct random random;
    random_init_seeded(&random, 11);
    world_open(&world, WORLD_SETS("timing.profile=relaxed",
                                  "gateway.backpressure.inbound.command_rate_burst=1000000"));
    for (int i = 0; i < PEOPLE; i++) {
        people[i] =
            (struct person){.shows = true, .shown_when_read = true, .accepted_at_ms = -TTL_MS};
        fake_ledger_join(&world.ledger, "team", NAMES[i]);
        client_connect(&people[i].client, &world, NAMES[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&random);
        receive_all();
        if (i % 7 == 0)
            check();
    }
    world_advance(&world, TTL_MS);
    check();
    for (int i = 0; i < PEOPLE; i++)
        client_hang_up(&people[i].client);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_viewer_sees_who_types_once_nothing_changes)};
    return cmocka_run_group_tests_name("typing_model", tests, NULL, NULL);
}
