/* Events for the application: what is written with an act, and what becomes of it. */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MESSAGES_ONLY = 1 << LEDGER_EVENT_MESSAGE_CREATED };

static const struct ledger_event_queue QUEUES[] = {
    {{"all", 3}, LEDGER_EVENT_TYPES_ALL & ~(1 << LEDGER_EVENT_MESSAGE_UNDELIVERED), 0},
    {{"messages", 8}, MESSAGES_ONLY, 0},
};

static void use_queues(struct harness *h)
{
    h->client.event_queues = QUEUES;
    h->client.event_queue_count = sizeof(QUEUES) / sizeof(QUEUES[0]);
}

void ledger_suite_acts_are_events_in_the_queues_that_want_them(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    harness_request_contact(h, "r1", "alice", "bob");
    h->clock.wall_ms++;
    harness_accept(h, "bob", "r1");
    h->clock.wall_ms++;
    harness_chat_create(h, "c", "alice", "bob");
    h->clock.wall_ms++;
    harness_send(h, "c", "alice", "1", "hello");
    h->clock.wall_ms++;
    harness_member_add(h, "c", "alice", "carol");
    h->clock.wall_ms++;
    harness_member_remove(h, "c", "carol", "carol");
    h->clock.wall_ms++;
    harness_direct(h, "direct1", "alice", "bob");
    h->clock.wall_ms++;
    expect(harness_call_event(h, LEDGER_EVENT_CALL_STARTED, "k", "alice", "bob"), "ok changed");
    h->clock.wall_ms++;
    harness_call(h, "k", "alice", "bob", 9000);
    h->clock.wall_ms++;
    harness_remove(h, "alice", "bob");
    expect(harness_events(h, "messages", 0), "ok message.created@5003:c");
    expect(harness_events(h, "all", 0),
           "ok contact.requested@5000:alice contact.accepted@5001:alice chat.created@5002:c "
           "message.created@5003:c chat.members_changed@5004:c chat.members_changed@5005:c "
           "chat.created@5006:direct1 call.started@5007:alice call.ended@5008:alice "
           "call.missed@5008:alice "
           "contact.removed@5009:alice");
    expect(harness_events(h, "other", 0), "ok");
}

void ledger_suite_acts_without_effect_are_no_events(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    harness_accept(h, "bob", "r1");
    harness_chat_create(h, "c", "alice", "bob");
    harness_direct(h, "direct1", "alice", "bob");
    harness_send(h, "c", "alice", "1", "hello");
    harness_block(h, "dora", "eve");
    use_queues(h);
    harness_request_contact(h, "r2", "alice", "bob");
    harness_accept(h, "bob", "r1");
    harness_chat_create(h, "c", "alice", "bob");
    harness_direct(h, "direct2", "bob", "alice");
    harness_send(h, "c", "alice", "1", "hello");
    harness_send(h, "c", "mallory", "1", "hello");
    harness_member_add(h, "c", "alice", "bob");
    harness_member_remove(h, "c", "mallory", "bob");
    harness_remove(h, "alice", "carol");
    harness_request_contact(h, "r3", "eve", "dora"); /* hidden by the block */
    expect(harness_events(h, "all", 0), "ok");
    harness_block(h, "bob", "alice");
    expect(harness_events(h, "all", 0), "ok contact.removed@5000:alice");
}

void ledger_suite_acts_make_no_events_without_queues(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "hello");
    harness_call_event(h, LEDGER_EVENT_CALL_STARTED, "k", "alice", "bob");
    expect(harness_events(h, "all", 0), "ok");
}

void ledger_suite_events_have_the_fields_of_their_pushes(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    h->shows_data = true;
    harness_chat_create(h, "c", "alice", "bob");
    expect(harness_events(h, "all", 0),
           "ok chat.created@5000:c{\"chat_id\":\"c\",\"kind\":\"group\",\"creator_id\":\"alice\","
           "\"members\":[\"alice\",\"bob\"],\"member_count\":2}");
    harness_events_remove(h, "all", 0, 1);
    harness_send(h, "c", "alice", "1", "hello");
    expect(harness_events(h, "all", 0),
           "ok message.created@5000:c{\"chat_id\":\"c\",\"message_id\":\"m-1\",\"sequence\":1,"
           "\"sender_id\":\"alice\","
           "\"sent_at\":\"1970-01-01T00:00:05.000Z\"}");
    harness_events_remove(h, "all", 0, 1);
    harness_request_contact(h, "r1", "bob", "alice");
    expect(harness_events(h, "all", 0),
           "ok contact.requested@5000:alice{\"request_id\":\"r1\",\"user_id\":\"bob\","
           "\"from\":\"bob\",\"to\":\"alice\"}");
    harness_events_remove(h, "all", 0, 1);
    harness_member_add(h, "c", "alice", "carol");
    expect(harness_events(h, "all", 0),
           "ok chat.members_changed@5000:c{\"chat_id\":\"c\",\"user_id\":\"alice\","
           "\"added\":[\"carol\"],\"removed\":[]}");
    harness_events_remove(h, "all", 0, 1);
    harness_call_event(h, LEDGER_EVENT_CALL_STARTED, "k", "alice", "bob");
    expect(harness_events(h, "all", 0),
           "ok call.started@5000:alice{\"call_id\":\"k\",\"from\":\"alice\",\"to\":\"bob\","
           "\"started_at\":\"1970-01-01T00:00:05.000Z\"}");
}

void ledger_suite_events_have_the_bodies_of_their_messages(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    h->shows_bodies = true;
    harness_chat_create(h, "c", "alice", "bob");
    harness_chat_create(h, "d", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    h->clock.wall_ms++;
    harness_send(h, "d", "alice", "1", "other");
    h->clock.wall_ms++;
    harness_send(h, "c", "bob", "1", "two");
    expect(harness_events(h, "messages", 0), "ok message.created@5000:c#1:one "
                                             "message.created@5001:d#1:other "
                                             "message.created@5002:c#2:two");
    expect(harness_events(h, "messages", 1), "ok message.created@5000:c#1:one more");
    assert_non_null(strstr(harness_events(h, "all", 0), "chat.created@5000:c#0:"));
}

/* A queue may want two events of one message. */
void ledger_suite_events_of_one_message_have_the_same_body(void **state)
{
    static const struct ledger_event_queue both = {
        {"both", 4}, MESSAGES_ONLY | 1 << LEDGER_EVENT_MESSAGE_UNDELIVERED, 0};
    struct harness *h = *state;
    h->client.event_queues = &both;
    h->client.event_queue_count = 1;
    h->shows_bodies = true;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    expect(harness_events(h, "both", 0),
           "ok message.created@5000:c#1:one message.undelivered@5000:c#1:one");
}

/* Whether they wait, are dead letters, or were put back: the events stay in their order. */
void ledger_suite_events_lose_the_body_of_a_deleted_message(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    h->shows_bodies = true;
    harness_chat_create(h, "c", "alice", "bob");
    for (int i = 1; i <= 3; i++) {
        char id[] = {(char)('0' + i), '\0'};
        h->clock.wall_ms = 6000 + i;
        harness_send(h, "c", "alice", id, id);
    }
    harness_events(h, "messages", 0);
    harness_events_bury(h, "messages", 0, 1, "refused");
    harness_message_delete(h, "c", 1);
    harness_message_delete(h, "c", 2);
    expect(harness_events(h, "messages", 0),
           "ok message.created@6002:c#2: message.created@6003:c#3:3");
    expect(harness_dead_events(h, "", "", 0), "ok message.created@6001:c#1:(messages refused)");
    harness_dead_events_replay(h, "messages", 0, 1);
    expect(harness_events(h, "messages", 0),
           "ok message.created@6002:c#2: message.created@6003:c#3:3 message.created@6001:c#1:");
}

void ledger_suite_events_lose_the_bodies_of_an_erased_user(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    h->shows_data = h->shows_bodies = true;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "secret");
    harness_send(h, "c", "alice", "2", "secret");
    harness_send(h, "c", "bob", "1", "public");
    harness_events(h, "messages", 0);
    harness_events_bury(h, "messages", 0, 1, "refused");
    assert_null(strstr(harness_dead_events(h, "", "", 0), "secret"));
    harness_dead_events_replay(h, "messages", 0, 1);
    assert_non_null(strstr(harness_events(h, "messages", 0), "secret"));
    expect(harness_erase(h, "c", "alice"), "ok");
    h->shows_data = false;
    expect(harness_events(h, "messages", 0), "ok message.created@5000:c#2: "
                                             "message.created@5000:c#3:public "
                                             "message.created@5000:c#1:");
}

enum { ORDERED = 30 };

/* The clock stands still, and may even go back: the order is that of the sequences. */
void ledger_suite_events_of_one_chat_are_in_order(void **state)
{
    struct harness *h = *state;
    char expected[ORDERED * 40] = "ok", id[16];
    use_queues(h);
    harness_chat_create(h, "c", "alice", "bob");
    for (int i = 0; i < ORDERED; i++) {
        snprintf(id, sizeof(id), "%d", i);
        h->clock.wall_ms = 9000 - i % 3;
        harness_send(h, "c", i % 2 ? "alice" : "bob", id, "text");
        snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected),
                 " message.created@%d:c", 9000 - i % 3);
    }
    expect(harness_events(h, "messages", 0), expected);
}

void ledger_suite_events_are_removed_one_by_one(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    harness_chat_create(h, "c", "alice", "bob");
    for (int i = 1; i <= 4; i++) {
        char id[] = {(char)('0' + i), '\0'};
        h->clock.wall_ms = 6000 + i;
        harness_send(h, "c", "alice", id, "text");
    }
    expect(harness_events(h, "messages", 2),
           "ok message.created@6001:c message.created@6002:c more");
    expect(harness_events_remove(h, "messages", 1, 1), "ok");
    expect(harness_events_remove(h, "messages", 1, 1), "ok"); /* again */
    expect(harness_events(h, "messages", 0),
           "ok message.created@6001:c message.created@6003:c message.created@6004:c");
    expect(harness_events_remove(h, "messages", 0, 3), "ok");
    expect(harness_events(h, "messages", 0), "ok");
    assert_non_null(strstr(harness_events(h, "all", 0), "message.created@6004:c"));
    harness_event_queue(h, "messages");
    assert_true(h->queue_count == 0 || h->queue_count == UINT64_MAX);
}

void ledger_suite_events_that_were_given_up_can_be_replayed(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    h->clock.wall_ms = 6000;
    harness_send(h, "c", "alice", "2", "two");
    harness_events(h, "messages", 0);
    expect(harness_events_bury(h, "messages", 0, 1, "answered 500"), "ok");
    expect(harness_events_bury(h, "messages", 0, 1, "again"), "ok");
    expect(harness_events(h, "messages", 0), "ok message.created@6000:c");
    expect(harness_dead_events(h, "", "", 0), "ok message.created@5000:c(messages answered 500)");
    expect(harness_dead_events_replay(h, "messages", 0, 1), "ok changed");
    expect(harness_dead_events(h, "", "", 0), "ok");
    expect(harness_events(h, "messages", 0), "ok message.created@6000:c message.created@5000:c");
    expect(harness_dead_events_replay(h, "messages", 0, 1), "ok");
}

void ledger_suite_dead_events_are_listed_in_pages(void **state)
{
    struct harness *h = *state;
    use_queues(h);
    harness_chat_create(h, "c", "alice", "bob");
    for (int i = 1; i <= 3; i++) {
        char id[] = {(char)('0' + i), '\0'};
        h->clock.wall_ms = 6000 + i;
        harness_send(h, "c", "alice", id, "text");
    }
    harness_events(h, "all", 0);
    harness_events_bury(h, "all", 0, 4, "a");
    harness_events(h, "messages", 0);
    harness_events_bury(h, "messages", 0, 3, "m");
    expect(harness_dead_events(h, "", "", 3),
           "ok chat.created@5000:c(all a) message.created@6001:c(all a) "
           "message.created@6002:c(all a) more");
    char last[LEDGER_EVENT_POSITION_BYTES_MAX + 1];
    strcpy(last, h->events[2]);
    expect(harness_dead_events(h, "all", last, 3),
           "ok message.created@6003:c(all a) message.created@6001:c(messages m) "
           "message.created@6002:c(messages m) more");
    strcpy(last, h->events[2]);
    expect(harness_dead_events(h, "messages", last, 3), "ok message.created@6003:c(messages m)");
}

void ledger_suite_event_queue_has_one_holder(void **state)
{
    struct harness *h = *state;
    expect(harness_event_queue(h, "all"), "ok  v0");
    expect(harness_event_lease(h, "all", "gw-1", 0), "ok gw-1 v1");
    expect(harness_event_lease(h, "all", "gw-2", 0), "ok gw-1 v1");
    expect(harness_event_lease(h, "all", "gw-1", 0), "ok gw-1 v2"); /* renewed */
    expect(harness_event_lease(h, "all", "gw-2", 1), "ok gw-1 v2");
    expect(harness_event_queue(h, "all"), "ok gw-1 v2");
    expect(harness_event_lease(h, "all", "gw-2", 2), "ok gw-2 v3"); /* taken over */
    expect(harness_event_lease(h, "all", "gw-1", 2), "ok gw-2 v3");
    expect(harness_event_queue(h, "messages"), "ok  v0");
}
