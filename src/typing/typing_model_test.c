/*
 * Typing against a model: whatever users do, in any order, everybody who has the chat open sees the truth as
 * soon as it is quiet, and at the end nobody is shown as typing.
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
    QUIET_MS = 600, /* five changes at once take two ticks; plus a reserve */
};

static const char *const NAMES[PEOPLE] = {"ann", "ben", "cat", "dan", "eve"};

/* One person with one device, as the test knows them and as they see the others. */
struct person {
    struct client client;
    bool has_open;
    bool shows;           /* everybody; else nobody */
    bool shown_when_read; /* as it was at the last update that was taken */
    int64_t taken_at_ms;  /* the last update */
    int64_t types_until_ms;
    bool believes[PEOPLE]; /* that this one types */
};

static struct world world;
static struct person people[PEOPLE];

static void say(struct person *person, const char *type)
{
    char json[128];
    snprintf(json, sizeof(json), "{\"type\":\"%s\",\"chat_id\":\"team\"}", type);
    client_send(&person->client, json);
}

static int number_of(const char *text)
{
    for (int i = 0; i < PEOPLE; i++) {
        char piece[32];
        snprintf(piece, sizeof(piece), "\"user_id\":\"%s\"", NAMES[i]);
        if (strstr(text, piece))
            return i;
    }
    fail_msg("nobody in %s", text);
    return -1;
}

static void hear_snapshot(struct person *person, const char *text)
{
    const char *typing = strstr(text, "\"typing\":[");
    assert_non_null(typing);
    for (int i = 0; i < PEOPLE; i++) {
        char piece[16];
        snprintf(piece, sizeof(piece), "\"%s\"", NAMES[i]);
        const char *found = strstr(typing, piece);
        person->believes[i] = found && found < strchr(typing, ']');
    }
}

/* Takes what came; what is not about typing, and refusals for coming too soon, are passed over. */
static void hear(struct person *person)
{
    while (client_next(&person->client) == CLIENT_TEXT) {
        const char *text = person->client.text;
        if (client_has(&person->client, "\"type\":\"chat_snapshot\""))
            hear_snapshot(person, text);
        else if (client_has(&person->client, "\"type\":\"typing_changed\"")) {
            assert_true(person->has_open);
            int typist = number_of(text);
            bool typing = client_has(&person->client, "\"typing\":true");
            assert_true(&people[typist] != person);
            person->believes[typist] = typing;
        }
    }
}

static void hear_all(void)
{
    for (int i = 0; i < PEOPLE; i++)
        hear(&people[i]);
}

static void check(void)
{
    world_advance(&world, QUIET_MS);
    hear_all();
    int64_t now_ms = world_now(&world);
    for (int i = 0; i < PEOPLE; i++)
        for (int j = 0; j < PEOPLE && people[i].has_open; j++) {
            bool types = j != i && people[j].types_until_ms > now_ms && people[j].shown_when_read;
            if (people[i].believes[j] != types)
                fail_msg("%s believes that %s %s", NAMES[i], NAMES[j],
                         types ? "does not type" : "types");
        }
}

/* ---- what people do ---- */

static void start(struct person *person)
{
    int64_t now_ms = world_now(&world);
    say(person, "typing_start");
    if (now_ms - person->taken_at_ms < INTERVAL_MS)
        return;
    person->taken_at_ms = now_ms;
    person->types_until_ms = now_ms + TTL_MS;
    person->shown_when_read = person->shows;
}

static void stop(struct person *person)
{
    say(person, "typing_stop");
    person->types_until_ms = 0;
}

/* A snapshot asks privacy anew, so that it may say less than what was shown; not more. */
static void open_chat(struct person *person)
{
    for (int i = 0; i < PEOPLE; i++)
        if (people[i].shown_when_read != people[i].shows)
            return;
    say(person, "open_chat");
    person->has_open = true;
    hear(person);
}

static void close_chat(struct person *person)
{
    hear(person);
    say(person, "close_chat");
    person->has_open = false;
    person->types_until_ms = 0;
    memset(person->believes, 0, sizeof(person->believes));
    hear(person);
}

static void come_again(struct person *person, const char *name)
{
    client_hang_up(&person->client);
    world_settle(&world);
    person->has_open = false;
    person->types_until_ms = 0;
    memset(person->believes, 0, sizeof(person->believes));
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
    int who = (int)random_below(random, PEOPLE);
    struct person *person = &people[who];
    switch (random_below(random, 12)) {
    case 0:
        open_chat(person);
        break;
    case 1:
        close_chat(person);
        break;
    case 2:
        come_again(person, NAMES[who]);
        break;
    case 3:
        set_shows(person, NAMES[who], random_below(random, 4) != 0);
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

static void every_viewer_sees_who_types_when_it_is_quiet(void **unused)
{
    (void)unused;
    struct random random;
    random_init_seeded(&random, 11);
    world_open(&world, WORLD_SETS("timing.profile=relaxed",
                                  "gateway.backpressure.inbound.command_rate_burst=1000000"));
    for (int i = 0; i < PEOPLE; i++) {
        people[i] = (struct person){.shows = true, .shown_when_read = true, .taken_at_ms = -TTL_MS};
        fake_ledger_join(&world.ledger, "team", NAMES[i]);
        client_connect(&people[i].client, &world, NAMES[i]);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&random);
        hear_all();
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
        cmocka_unit_test(every_viewer_sees_who_types_when_it_is_quiet)};
    return cmocka_run_group_tests_name("typing_model", tests, NULL, NULL);
}
