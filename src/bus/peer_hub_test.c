/* Hubs that find each other on the loopback: secrets, breaks, strangers, slow and silent peers. */
#include "bus/peer_hub.h"

#include "base/container.h"
#include "bus/bus.h"
#include "support/worker_loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOON_TURNS = 6000, TURN_MS = 1, QUIET_TURNS = 100, STRANGERS = 3 * PEER_HUB_STRANGERS_MAX };

#define SECRET "an open secret of this test"

struct office {
    struct worker_loop worker;
    struct mailbox mailbox;
    struct peer_hub *hub;
    char address[32];
    char heard[512]; /* "topic=payload;" for each */
    size_t count;
    size_t bytes;
    bool open;
};

struct fixture {
    struct office offices[2];
};

static void received(void *arg, struct slice topic, struct slice payload)
{
    struct office *office = arg;
    size_t len = strlen(office->heard);
    office->count++;
    office->bytes += payload.len;
    snprintf(office->heard + len, sizeof(office->heard) - len, "%.*s=%.*s;", SLICE_FORMAT(topic),
             payload.len < 64 ? (int)payload.len : 0, payload.data);
}

static void open_office(struct office *office, const char *name, const char *secret,
                        const char *listen)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    memset(office, 0, sizeof(*office));
    worker_loop_open(&office->worker);
    assert_true(mailbox_init(&office->mailbox, &office->worker.loop, office));
    office->hub = peer_hub_make(&(struct peer_hub_options){.loop = &office->worker.loop,
                                                           .streams = &office->worker.streams,
                                                           .random = &office->worker.random,
                                                           .metrics = &office->worker.metrics,
                                                           .mailbox = &office->mailbox,
                                                           .name = slice_of(name),
                                                           .secret = slice_of(secret),
                                                           .received = received,
                                                           .arg = office});
    assert_non_null(office->hub);
    assert_true(peer_hub_listen(office->hub, listen, error));
    snprintf(office->address, sizeof(office->address), "127.0.0.1:%u", peer_hub_port(office->hub));
    office->open = true;
}

static void close_office(struct office *office)
{
    if (!office->open)
        return;
    mailbox_free(&office->mailbox);
    peer_hub_free(&office->hub);
    worker_loop_close(&office->worker);
    office->open = false;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    open_office(&fixture->offices[0], "east", SECRET, "127.0.0.1:0");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    close_office(&fixture->offices[0]);
    close_office(&fixture->offices[1]);
    free(fixture);
    return 0;
}

static void turn(struct fixture *fixture, int times)
{
    for (int i = 0; i < times; i++)
        for (size_t j = 0; j < 2; j++)
            if (fixture->offices[j].open)
                loop_turn(&fixture->offices[j].worker.loop, TURN_MS);
}

static void await_links(struct fixture *fixture, size_t first, size_t second)
{
    struct office *offices = fixture->offices;
    for (int i = 0; i < SOON_TURNS; i++) {
        if (peer_hub_open_links(offices[0].hub) == first &&
            (!offices[1].open || peer_hub_open_links(offices[1].hub) == second))
            return;
        turn(fixture, 1);
    }
    fail_msg("links: %zu and %zu", peer_hub_open_links(offices[0].hub),
             offices[1].open ? peer_hub_open_links(offices[1].hub) : 0);
}

static void send_from(struct office *office, const char *topic, const char *payload)
{
    peer_hub_send(office->hub, &office->worker.metrics, slice_of(topic), slice_of(payload));
}

static void await_heard(struct fixture *fixture, size_t index, const char *expected)
{
    struct office *office = &fixture->offices[index];
    for (int i = 0; strcmp(office->heard, expected) != 0 && i < SOON_TURNS; i++)
        turn(fixture, 1);
    turn(fixture, QUIET_TURNS);
    assert_string_equal(office->heard, expected);
    office->heard[0] = '\0';
}

static int64_t metric(const struct office *office, enum metric metric)
{
    return office->worker.metrics.values[metric];
}

/* ---- linked ---- */

static void join(struct fixture *fixture)
{
    open_office(&fixture->offices[1], "west", SECRET, "127.0.0.1:0");
    assert_true(peer_hub_add(fixture->offices[1].hub, fixture->offices[0].address));
    await_links(fixture, 1, 1);
}

static void events_go_both_ways(void **state)
{
    struct fixture *fixture = *state;
    join(fixture);
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_LINKS_OPEN), 1);
    send_from(&fixture->offices[0], "broadcast", "1");
    send_from(&fixture->offices[0], "presence:a b", "");
    await_heard(fixture, 1, "broadcast=1;presence:a b=;");
    send_from(&fixture->offices[1], "broadcast", "2");
    await_heard(fixture, 0, "broadcast=2;");
    assert_string_equal(fixture->offices[1].heard, "");
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_SENT), 2);
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_RECEIVED), 1);
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_SKIPPED), 0);
}

static void a_gateways_events_go_to_its_process_alone(void **state)
{
    struct fixture *fixture = *state;
    join(fixture);
    send_from(&fixture->offices[0], "server:west:deliver", "a");
    send_from(&fixture->offices[0], "server:west-11:deliver", "b");
    send_from(&fixture->offices[0], "server:west-:deliver", "no");
    send_from(&fixture->offices[0], "server:west-1x:deliver", "no");
    send_from(&fixture->offices[0], "server:north:deliver", "no");
    await_heard(fixture, 1, "server:west:deliver=a;server:west-11:deliver=b;");
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_SKIPPED), 3);
}

static void two_links_between_two_are_one_road(void **state)
{
    struct fixture *fixture = *state;
    join(fixture);
    assert_true(peer_hub_add(fixture->offices[0].hub, fixture->offices[1].address));
    turn(fixture, QUIET_TURNS);
    await_links(fixture, 1, 1);
    send_from(&fixture->offices[0], "broadcast", "1");
    await_heard(fixture, 1, "broadcast=1;");
    send_from(&fixture->offices[1], "broadcast", "2");
    await_heard(fixture, 0, "broadcast=2;");
}

static void ones_own_address_is_ignored(void **state)
{
    struct fixture *fixture = *state;
    assert_true(peer_hub_add(fixture->offices[0].hub, fixture->offices[0].address));
    turn(fixture, QUIET_TURNS);
    assert_int_equal(peer_hub_open_links(fixture->offices[0].hub), 0);
    send_from(&fixture->offices[0], "broadcast", "1");
    await_heard(fixture, 0, "");
    join(fixture);
}

static void a_peer_that_went_and_came_back_is_linked_again(void **state)
{
    struct fixture *fixture = *state;
    char address[32];
    join(fixture);
    snprintf(address, sizeof(address), "%s", fixture->offices[1].address);
    assert_true(peer_hub_add(fixture->offices[0].hub, address));
    turn(fixture, QUIET_TURNS);
    close_office(&fixture->offices[1]);
    await_links(fixture, 0, 0);
    send_from(&fixture->offices[0], "broadcast", "lost");
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_SKIPPED), 1);
    open_office(&fixture->offices[1], "west", SECRET, address);
    await_links(fixture, 1, 1);
    send_from(&fixture->offices[0], "broadcast", "2");
    await_heard(fixture, 1, "broadcast=2;");
}

static void the_registry_is_followed(void **state)
{
    struct fixture *fixture = *state;
    struct office *east = &fixture->offices[0], *west = &fixture->offices[1];
    char address[32];
    open_office(west, "west", SECRET, "127.0.0.1:0");
    struct peer_hub_entry entries[] = {
        {SLICE("east-0"), slice_of(east->address)}, /* ourselves */
        {SLICE("west-0"), slice_of(west->address)},
        {SLICE("west-1"), slice_of(west->address)},
        {SLICE("old"), SLICE_NONE},
    };
    peer_hub_learn(east->hub, entries, 4);
    await_links(fixture, 1, 1);
    peer_hub_learn(east->hub, entries, 4);
    peer_hub_learn(west->hub, entries, 4); /* linked already: not dialled */
    turn(fixture, QUIET_TURNS);
    await_links(fixture, 1, 1);
    peer_hub_learn(east->hub, NULL, 0); /* an open link stays */
    turn(fixture, QUIET_TURNS);
    await_links(fixture, 1, 1);
    close_office(west);
    await_links(fixture, 0, 0);
    peer_hub_learn(east->hub, NULL, 0); /* forgotten */
    snprintf(address, sizeof(address), "%s", west->address);
    open_office(west, "west", SECRET, address);
    turn(fixture, 10 * QUIET_TURNS);
    assert_int_equal(peer_hub_open_links(east->hub), 0);
}

/* Once it waits to dial again, and once it is about to connect. */
/* Who is linked but not in the registry holds users of whom nobody finds a route. */
static void those_the_registry_lost_hear_what_is_for_them(void **state)
{
    struct fixture *fixture = *state;
    struct office *first = &fixture->offices[0];
    struct peer_hub_entry both[] = {{SLICE("east"), SLICE("")}, {SLICE("west-1"), SLICE("")}};
    join(fixture);
    peer_hub_learn(first->hub, both, 2);
    assert_int_equal(peer_hub_lost_links(first->hub), 0);
    send_from(first, "lost", "nobody's");
    await_heard(fixture, 1, "");
    peer_hub_learn(first->hub, both, 1);
    assert_int_equal(peer_hub_lost_links(first->hub), 1);
    send_from(first, "lost", "yours");
    await_heard(fixture, 1, "broadcast=yours;");
    peer_hub_learn(first->hub, both, 2);
    assert_int_equal(peer_hub_lost_links(first->hub), 0);
}

static void one_that_was_just_forgotten_goes_with_the_hub(void **state)
{
    struct fixture *fixture = *state;
    struct office *east = &fixture->offices[0], *west = &fixture->offices[1];
    struct peer_hub_entry entries[] = {
        {SLICE("west"), SLICE("127.0.0.1:1")},
        {SLICE("north"), slice_of(east->address)},
    };
    open_office(west, "west", SECRET, "127.0.0.1:0");
    peer_hub_learn(west->hub, entries, 2);
    turn(fixture, 1);
    peer_hub_learn(west->hub, NULL, 0);
    peer_hub_learn(west->hub, &entries[1], 1); /* named again: another one is dialled */
    await_links(fixture, 1, 1);
    peer_hub_learn(east->hub, entries, 2);
    peer_hub_learn(east->hub, NULL, 0);
}

/* ---- not linked ---- */

static void a_wrong_secret_gets_nothing(void **state)
{
    struct fixture *fixture = *state;
    open_office(&fixture->offices[1], "west", "another secret", "127.0.0.1:0");
    peer_hub_add(fixture->offices[1].hub, fixture->offices[0].address);
    for (int i = 0; i < 5; i++) {
        turn(fixture, QUIET_TURNS);
        assert_int_equal(peer_hub_open_links(fixture->offices[0].hub), 0);
        assert_int_equal(peer_hub_open_links(fixture->offices[1].hub), 0);
        send_from(&fixture->offices[0], "broadcast", "secret");
    }
    assert_string_equal(fixture->offices[1].heard, "");
    close_office(&fixture->offices[1]);
    turn(fixture, QUIET_TURNS);
    join(fixture); /* and keeps nobody else out */
}

static int connect_to(const struct office *office)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(peer_hub_port(office->hub)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Silent ones, and those that send anything at all: none of them keeps a peer out for long. */
static void strangers_are_survived(void **state)
{
    struct fixture *fixture = *state;
    int fds[STRANGERS];
    char noise[4096];
    for (size_t i = 0; i < STRANGERS; i++) {
        fds[i] = connect_to(&fixture->offices[0]);
        random_bytes(&fixture->offices[0].worker.random, noise, sizeof(noise));
        if (i % 3 == 0)
            memcpy(noise, "RCPL\1D\377", 7); /* a hello that begins well */
        if (i % 3 != 2)
            (void)!send(fds[i], noise, i % 7 ? sizeof(noise) : 5, MSG_NOSIGNAL);
        turn(fixture, 1);
    }
    join(fixture);
    for (size_t i = 0; i < STRANGERS; i++)
        close(fds[i]);
    turn(fixture, QUIET_TURNS);
    send_from(&fixture->offices[1], "broadcast", "1");
    await_heard(fixture, 0, "broadcast=1;");
    assert_int_equal(fixture->offices[0].count, 1);
}

static bool is_cut(int fd)
{
    char hello[256];
    ssize_t len;
    while ((len = recv(fd, hello, sizeof(hello), MSG_DONTWAIT)) > 0)
        ;
    return len == 0;
}

/* They need not be waited out, either. */
static void strangers_give_way(void **state)
{
    struct fixture *fixture = *state;
    int fds[STRANGERS];
    for (size_t i = 0; i < STRANGERS; i++) {
        fds[i] = connect_to(&fixture->offices[0]);
        turn(fixture, 1);
    }
    join(fixture);
    assert_true(is_cut(fds[0]));
    assert_false(is_cut(fds[STRANGERS - 1]));
    for (size_t i = 0; i < STRANGERS; i++)
        close(fds[i]);
}

/* ---- peers that misbehave ---- */

struct rogue {
    struct worker_loop worker;
    struct peer_link *link;
    bool open;
};

static void rogue_opened(struct peer_link *link, void *arg, struct slice name)
{
    (void)link, (void)name;
    ((struct rogue *)arg)->open = true;
}

static void rogue_received(struct peer_link *link, void *arg, struct slice frame)
{
    (void)link, (void)arg, (void)frame;
}

static void rogue_closed(struct peer_link *link, void *arg, const char *why)
{
    (void)link, (void)why;
    ((struct rogue *)arg)->link = NULL;
}

static void open_rogue(struct fixture *fixture, struct rogue *rogue)
{
    static const struct peer_link_owner owner = {rogue_opened, rogue_received, rogue_closed};
    memset(rogue, 0, sizeof(*rogue));
    worker_loop_open(&rogue->worker);
    rogue->link = peer_link_dial(&(struct peer_link_options){.loop = &rogue->worker.loop,
                                                             .streams = &rogue->worker.streams,
                                                             .random = &rogue->worker.random,
                                                             .secret = slice_of(SECRET),
                                                             .name = SLICE("rogue")},
                                 fixture->offices[0].address, &owner, rogue);
    for (int i = 0; !rogue->open && i < SOON_TURNS; i++) {
        loop_turn(&rogue->worker.loop, TURN_MS);
        turn(fixture, 1);
    }
    assert_true(rogue->open);
    await_links(fixture, 1, 0);
}

static void close_rogue(struct rogue *rogue)
{
    if (rogue->link)
        peer_link_drop(&rogue->link);
    worker_loop_close(&rogue->worker);
}

static void wrong_frames_are_ignored(void **state)
{
    struct fixture *fixture = *state;
    struct slice frames[] = {SLICE("x"), SLICE("\0\0payload"), SLICE("\0\7short"),
                             SLICE("\377\377long"), SLICE("\0\1tfine")};
    struct rogue rogue;
    open_rogue(fixture, &rogue);
    for (size_t i = 0; i < 5; i++)
        assert_true(peer_link_send(rogue.link, &frames[i], 1));
    worker_loop_run(&rogue.worker, 50);
    await_heard(fixture, 0, "t=fine;");
    assert_int_equal(metric(&fixture->offices[0], METRIC_PEER_FRAMES_RECEIVED), 1);
    close_rogue(&rogue);
    await_links(fixture, 0, 0);
}

/* One that reads nothing costs its own events, and a bounded amount of memory. */
static void a_peer_that_does_not_read_is_skipped(void **state)
{
    enum { EVENT_BYTES = 64 * 1024, EVENTS = 2 * PEER_HUB_QUEUE_BYTES_MAX / EVENT_BYTES };
    struct fixture *fixture = *state;
    struct office *east = &fixture->offices[0];
    struct rogue rogue;
    char *payload = calloc(1, EVENT_BYTES);
    open_rogue(fixture, &rogue);
    for (int i = 0; i < EVENTS; i++) {
        peer_hub_send(east->hub, &east->worker.metrics, SLICE("t"),
                      (struct slice){payload, EVENT_BYTES});
        turn(fixture, 1);
    }
    int64_t sent = metric(east, METRIC_PEER_FRAMES_SENT);
    int64_t skipped = metric(east, METRIC_PEER_FRAMES_SKIPPED);
    assert_int_equal(sent + skipped, EVENTS);
    assert_true(skipped > 0 && sent * EVENT_BYTES >= PEER_HUB_QUEUE_BYTES_MAX / 2);
    close_rogue(&rogue);
    free(payload);
    await_links(fixture, 0, 0);
    join(fixture);
}

static void a_flood_arrives_whole_and_in_order(void **state)
{
    enum { EVENTS = 50000 };
    struct fixture *fixture = *state;
    join(fixture);
    for (int i = 0; i < EVENTS; i++) {
        send_from(&fixture->offices[0], "t", "0123456789");
        if (i % 1000 == 0)
            turn(fixture, 1);
    }
    for (int i = 0; fixture->offices[1].count < EVENTS && i < SOON_TURNS; i++)
        turn(fixture, 1);
    assert_int_equal(fixture->offices[1].count, EVENTS);
    assert_int_equal(fixture->offices[1].bytes, 10 * EVENTS);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_fixture(events_go_both_ways),
        with_fixture(a_gateways_events_go_to_its_process_alone),
        with_fixture(two_links_between_two_are_one_road),
        with_fixture(ones_own_address_is_ignored),
        with_fixture(a_peer_that_went_and_came_back_is_linked_again),
        with_fixture(the_registry_is_followed),
        with_fixture(those_the_registry_lost_hear_what_is_for_them),
        with_fixture(one_that_was_just_forgotten_goes_with_the_hub),
        with_fixture(a_wrong_secret_gets_nothing),
        with_fixture(strangers_are_survived),
        with_fixture(strangers_give_way),
        with_fixture(wrong_frames_are_ignored),
        with_fixture(a_peer_that_does_not_read_is_skipped),
        with_fixture(a_flood_arrives_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
