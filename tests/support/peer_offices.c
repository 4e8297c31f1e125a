#include "support/peer_offices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void on_office_event(void *arg, struct slice topic, struct slice payload)
{
    struct peer_office *office = arg;
    size_t len = strlen(office->heard);
    office->count++;
    office->bytes += payload.len;
    snprintf(office->heard + len, sizeof(office->heard) - len, "%.*s=%.*s;", SLICE_FORMAT(topic),
             payload.len < 64 ? (int)payload.len : 0, payload.data);
}

void peer_office_open(struct peer_office *office, const char *name, const char *secret,
                      const char *listen)
{
    char error[LISTENER_ERROR_TEXT_MAX];
    memset(office, 0, sizeof(*office));
    worker_loop_open(&office->worker);
    assert_true(mailbox_init(&office->mailbox, &office->worker.loop, MAILBOX_MAIL_MAX, office));
    office->hub = peer_hub_make(&(struct peer_hub_options){.loop = &office->worker.loop,
                                                           .streams = &office->worker.streams,
                                                           .random = &office->worker.random,
                                                           .metrics = &office->worker.metrics,
                                                           .mailbox = &office->mailbox,
                                                           .name = slice_of(name),
                                                           .secret = slice_of(secret),
                                                           .on_event = on_office_event,
                                                           .arg = office});
    assert_non_null(office->hub);
    assert_true(peer_hub_listen(office->hub, listen, error));
    snprintf(office->address, sizeof(office->address), "127.0.0.1:%u", peer_hub_port(office->hub));
    office->open = true;
}

void peer_office_close(struct peer_office *office)
{
    if (!office->open)
        return;
    mailbox_free(&office->mailbox);
    peer_hub_free(&office->hub);
    worker_loop_close(&office->worker);
    office->open = false;
}

int peer_offices_set_up(void **state)
{
    struct peer_offices *offices = calloc(1, sizeof(*offices));
    peer_office_open(&offices->at[0], "east", PEER_OFFICE_SECRET, "127.0.0.1:0");
    *state = offices;
    return 0;
}

int peer_offices_tear_down(void **state)
{
    struct peer_offices *offices = *state;
    peer_office_close(&offices->at[0]);
    peer_office_close(&offices->at[1]);
    free(offices);
    return 0;
}

void peer_offices_turn(struct peer_offices *offices, int times)
{
    for (int i = 0; i < times; i++)
        for (size_t j = 0; j < 2; j++)
            if (offices->at[j].open)
                loop_turn(&offices->at[j].worker.loop, PEER_OFFICES_TURN_MS);
}

void peer_offices_await_links(struct peer_offices *offices, size_t first, size_t second)
{
    struct peer_office *at = offices->at;
    for (int i = 0; i < PEER_OFFICES_SOON_TURNS; i++) {
        if (peer_hub_open_links(at[0].hub) == first &&
            (!at[1].open || peer_hub_open_links(at[1].hub) == second))
            return;
        peer_offices_turn(offices, 1);
    }
    fail_msg("links: %zu and %zu", peer_hub_open_links(at[0].hub),
             at[1].open ? peer_hub_open_links(at[1].hub) : 0);
}

void peer_office_send(struct peer_office *office, const char *topic, const char *payload)
{
    peer_hub_send(office->hub, &office->worker.metrics, slice_of(topic), slice_of(payload));
}

void peer_offices_await_heard(struct peer_offices *offices, size_t index, const char *expected)
{
    struct peer_office *office = &offices->at[index];
    for (int i = 0; strcmp(office->heard, expected) != 0 && i < PEER_OFFICES_SOON_TURNS; i++)
        peer_offices_turn(offices, 1);
    peer_offices_turn(offices, PEER_OFFICES_QUIET_TURNS);
    assert_string_equal(office->heard, expected);
    office->heard[0] = '\0';
}

int64_t peer_office_metric(const struct peer_office *office, enum metric metric)
{
    return office->worker.metrics.values[metric];
}

void peer_offices_join(struct peer_offices *offices)
{
    peer_office_open(&offices->at[1], "west", PEER_OFFICE_SECRET, "127.0.0.1:0");
    assert_true(peer_hub_add(offices->at[1].hub, offices->at[0].address));
    peer_offices_await_links(offices, 1, 1);
}
