/* The conformance of messages, and of the promises that hold for every operation. */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void ledger_suite_messages_get_dense_sequences(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    harness_chat_create(h, "c2", "alice", "bob");
    expect(harness_send(h, "c1", "alice", "x1", "hello"), "ok 1 m-x1");
    expect(harness_send(h, "c1", "bob", "x1", "hello to you"), "ok 2 m-x1");
    expect(harness_send(h, "c2", "alice", "x1", "elsewhere"), "ok 1 m-x1");
    expect(harness_send(h, "c1", "carol", "x2", "let me in"), "not_found");
    expect(harness_send(h, "c9", "carol", "x2", "where"), "not_found");
    expect(harness_send(h, "c1", "alice", "x2", ""), "invalid");
    expect(harness_send(h, "c1", "alice", "x3", "three"), "ok 3 m-x3");
    expect(harness_repair(h, "c1", true), "ok 3/3");
    expect(harness_repair(h, "c9", true), "not_found");
}

void ledger_suite_repeated_message_returns_the_first_send(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    expect(harness_send(h, "c1", "alice", "x1", "hello"), "ok 1 m-x1");
    expect(harness_send(h, "c1", "alice", "x2", "there"), "ok 2 m-x2");
    expect(harness_send(h, "c1", "alice", "x1", "hello"), "ok 1 m-x1 duplicate");
    expect(harness_send(h, "c1", "alice", "x1", "other"), "ok 1 m-x1 duplicate differs");
    expect(harness_outbox_remove(h, "c1", 1, h->clock.wall_ms), "ok");
    expect(harness_send(h, "c1", "alice", "x1", "hello"), "ok 1 m-x1 duplicate published");
    expect(harness_after(h, "c1", "bob", 0, 0), "ok c1#1:alice:hello c1#2:alice:there /2");
}

void ledger_suite_block_stops_messages_in_a_chat_of_two(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "two", "alice", "bob");
    harness_chat_create(h, "three", "alice", "bob,carol");
    expect(harness_send(h, "two", "alice", "x1", "hello"), "ok 1 m-x1");
    harness_block(h, "bob", "alice");
    expect(harness_send(h, "two", "alice", "x2", "why"), "forbidden");
    expect(harness_send(h, "two", "bob", "x2", "because"), "forbidden");
    expect(harness_send(h, "two", "alice", "x1", "hello"), "ok 1 m-x1 duplicate");
    expect(harness_after(h, "two", "alice", 0, 0), "ok two#1:alice:hello /1");
    expect(harness_send(h, "three", "alice", "x1", "hello all"), "ok 1 m-x1");
    harness_unblock(h, "bob", "alice");
    expect(harness_send(h, "two", "alice", "x2", "why"), "ok 2 m-x2");
}

void ledger_suite_messages_are_read_in_both_directions(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    expect(harness_after(h, "c", "bob", 0, 0), "ok /0");
    for (char body[2] = "1"; body[0] <= '5'; body[0]++)
        harness_send(h, "c", "alice", body, body);
    expect(harness_after(h, "c", "bob", 0, 2), "ok c#1:alice:1 c#2:alice:2 more /5");
    expect(harness_after(h, "c", "bob", 3, 2), "ok c#4:alice:4 c#5:alice:5 /5");
    expect(harness_after(h, "c", "bob", 5, 2), "ok /5");
    expect(harness_after(h, "c", "", UINT64_MAX, 2), "ok /5");
    expect(harness_before(h, "c", "bob", UINT64_MAX, 2), "ok c#4:alice:4 c#5:alice:5 more /5");
    expect(harness_before(h, "c", "bob", 3, 2), "ok c#1:alice:1 c#2:alice:2 /5");
    expect(harness_before(h, "c", "bob", 1, 2), "ok /5");
    expect(harness_after(h, "c", "carol", 0, 2), "not_found");
    expect(harness_before(h, "d", "carol", 9, 2), "not_found");
}

void ledger_suite_cursors_determine_unread_counts(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    harness_send(h, "c", "alice", "2", "two");
    harness_send(h, "c", "alice", "3", "three");
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 3/3");
    expect(harness_cursor(h, "c", "bob", "phone", 1), "ok changed read 1 shown");
    expect(harness_cursor(h, "c", "bob", "desk", 2), "ok changed read 2 shown");
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 1/3");
    expect(harness_cursor(h, "c", "bob", "desk", 1), "ok");
    expect(harness_cursor(h, "c", "bob", "phone", 99), "ok changed read 3 shown");
    expect(harness_chats(h, "bob", "", 0, 0, false), "ok c by alice (2) 0/3");
    expect(harness_send(h, "c", "alice", "4", "four"), "ok 4 m-4");
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 1/4");
    expect(harness_cursor(h, "c", "carol", "phone", 1), "not_found");
}

void ledger_suite_own_messages_are_not_unread(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    harness_send(h, "c", "alice", "2", "two");
    harness_send(h, "c", "bob", "1", "three");
    harness_send(h, "c", "alice", "3", "four");
    harness_send(h, "c", "alice", "3", "four");
    expect(harness_chat(h, "c", "alice"), "ok c by alice (2 alice bob) 1/4");
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 3/4");
    harness_cursor(h, "c", "bob", "phone", 2);
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 1/4");
    harness_cursor(h, "c", "alice", "phone", 3);
    expect(harness_chat(h, "c", "alice"), "ok c by alice (2 alice bob) 0/4");
    harness_cursor(h, "c", "bob", "phone", 4);
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 0/4");
}

/* Each message is sent at a millisecond of its own: the order of those of one millisecond is not promised. */
void ledger_suite_outbox_holds_unpublished_messages_in_order(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "b", "alice", "bob");
    harness_chat_create(h, "a", "alice", "bob");
    h->clock.wall_ms = 6001;
    harness_send(h, "b", "alice", "1", "first");
    h->clock.wall_ms = 6002;
    harness_send(h, "a", "bob", "2", "second");
    h->clock.wall_ms = 6003;
    harness_send(h, "b", "bob", "3", "third");
    expect(harness_outbox(h, 0), "ok b#1:alice:first a#1:bob:second b#2:bob:third /0");
    expect(harness_outbox(h, 1), "ok b#1:alice:first more /0");
    expect(harness_outbox(h, 2), "ok b#1:alice:first a#1:bob:second more /0");
    expect(harness_outbox_remove(h, "a", 1, 6002), "ok");
    expect(harness_outbox_remove(h, "a", 1, 6002), "ok");
    expect(harness_outbox(h, 0), "ok b#1:alice:first b#2:bob:third /0");
    expect(harness_outbox_remove(h, "b", 1, 6001), "ok");
    expect(harness_outbox_remove(h, "b", 2, 6003), "ok");
    expect(harness_outbox(h, 0), "ok /0");
}

enum { OUTBOX_CHATS = 40, OUTBOX_CHAT_MESSAGES = 8 };

static void on_outbox_listed(void *arg, const struct ledger_messages_outcome *outcome)
{
    uint64_t *next = arg;
    assert_int_equal(outcome->status, LEDGER_OK);
    for (size_t i = 0; i < outcome->count; i++) {
        assert_int_equal(outcome->messages[i].sent_at_ms, 10000 + (int64_t)(*next)++);
        assert_int_equal(outcome->messages[i].client_message_id.len, 5);
    }
}

/* Of many chats too, a page is the oldest messages of all, and what is removed at once may repeat itself. */
void ledger_suite_outbox_of_many_chats_is_in_order(void **state)
{
    struct harness *h = *state;
    struct ledger_position positions[2 * OUTBOX_CHATS];
    char chats[OUTBOX_CHATS][8], id[8];
    for (unsigned i = 0; i < OUTBOX_CHATS; i++) {
        snprintf(chats[i], sizeof(chats[i]), "c%u", i);
        harness_chat_create(h, chats[i], "alice", "bob");
    }
    for (unsigned i = 0; i < OUTBOX_CHATS * OUTBOX_CHAT_MESSAGES; i++) {
        snprintf(id, sizeof(id), "%05u", i);
        h->clock.wall_ms = 10000 + i;
        harness_send(h, chats[i % OUTBOX_CHATS], "alice", id, "text");
    }
    uint64_t next = 0;
    ledger_outbox_list(&h->client, OUTBOX_CHATS, on_outbox_listed, &next);
    harness_settle(h);
    assert_int_equal(next, OUTBOX_CHATS);
    for (unsigned i = 0; i < 2 * OUTBOX_CHATS; i++)
        positions[i] = (struct ledger_position){slice_of(chats[i % OUTBOX_CHATS]), 1,
                                                10000 + i % OUTBOX_CHATS};
    unsigned answers = h->answers;
    ledger_outbox_remove(&h->client, positions, 2 * OUTBOX_CHATS, harness_count_change, h);
    harness_await(h, answers + 1);
    ledger_outbox_list(&h->client, 0, on_outbox_listed, &next);
    harness_settle(h);
    assert_int_equal(next, OUTBOX_CHATS * OUTBOX_CHAT_MESSAGES);
}

void ledger_suite_outbox_is_skipped_by_clients_that_publish_by_other_means(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    h->client.skips_outbox = true;
    expect(harness_send(h, "c", "alice", "1", "skips"), "ok 1 m-1");
    expect(harness_send(h, "c", "alice", "1", "skips"), "ok 1 m-1 duplicate published");
    expect(harness_outbox(h, 0), "ok /0");
    h->client.skips_outbox = false;
    expect(harness_send(h, "c", "alice", "2", "enters"), "ok 2 m-2");
    expect(harness_outbox(h, 0), "ok c#2:alice:enters /0");
}

/* ---- the version of a chat's members ---- */

struct versions {
    uint64_t of_chat;
    uint64_t of_message;
};

static void on_chat_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    ((struct versions *)arg)->of_chat = outcome->chat.members_version;
}

static void on_message_appended(void *arg, const struct ledger_append_outcome *outcome)
{
    ((struct versions *)arg)->of_message = outcome->members_version;
}

/* Stores a message and reads the chat. Returns the members_version, which must be the same in both. */
static uint64_t read_members_version(struct harness *h, const char *client_id)
{
    struct versions versions = {0};
    ledger_message_append(&h->client, SLICE("c1"), SLICE("alice"), slice_of(client_id),
                          slice_of(client_id), SLICE("text"), on_message_appended, &versions);
    harness_settle(h);
    ledger_chat_get(&h->client, SLICE("c1"), SLICE_NONE, false, on_chat_read, &versions);
    harness_settle(h);
    assert_int_equal(versions.of_chat, versions.of_message);
    return versions.of_chat;
}

void ledger_suite_members_version_grows_with_every_change(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    uint64_t first = read_members_version(h, "x1");
    assert_int_not_equal(first, 0);
    assert_int_equal(read_members_version(h, "x2"), first);
    harness_member_add(h, "c1", "alice", "carol");
    uint64_t with_carol = read_members_version(h, "x3");
    assert_true(with_carol > first);
    harness_member_add(h, "c1", "alice", "carol");
    assert_int_equal(read_members_version(h, "x4"), with_carol);
    harness_member_remove(h, "c1", "alice", "carol");
    harness_member_add(h, "c1", "alice", "dave");
    assert_true(read_members_version(h, "x5") > with_carol + 1);
}

void ledger_suite_dead_letters_can_be_replayed(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "poison");
    harness_send(h, "c", "alice", "2", "fine");
    expect(harness_dead_letter_put(h, "c", 1, "tried 3 times"), "ok changed");
    expect(harness_outbox(h, 0), "ok c#2:alice:fine /0");
    expect(harness_dead_letters(h), "ok c#1:tried 3 times");
    expect(harness_replay(h, "c", 2), "not_found");
    expect(harness_replay(h, "c", 1), "ok changed");
    expect(harness_dead_letters(h), "ok");
    const char *outbox = harness_outbox(h, 0); /* the place of a replayed message is not promised */
    assert_non_null(strstr(outbox, " c#1:alice:poison"));
    assert_non_null(strstr(outbox, " c#2:alice:fine"));
    expect(harness_replay(h, "c", 1), "not_found");
    expect(harness_dead_letter_put(h, "c", 1, "again"), "ok changed");
    expect(harness_dead_letter_put(h, "c", 1, "and again"), "ok");
    expect(harness_dead_letters(h), "ok c#1:again");
    expect(harness_dead_letter_put(h, "c", 9, "never stored"), "not_found");
}

void ledger_suite_application_adds_members_and_sends_without_consent(void **state)
{
    struct harness *h = *state;
    harness_block(h, "bob", "alice");
    expect(harness_chat_create(h, "c", "alice", "bob,dave"), "forbidden");
    expect(harness_chat_make(h, "c", "alice", "bob,dave"),
           "ok created c by alice (3 alice bob dave) 0/0");
    expect(harness_chat_make(h, "c", "alice", "bob,dave"), "ok c by alice (3 alice bob dave) 0/0");
    harness_block(h, "carol", "alice");
    expect(harness_member_add(h, "c", "alice", "carol"), "forbidden");
    expect(harness_member_add(h, "c", "\x01", "carol"), "ok changed");
    expect(harness_member_add(h, "c", "\x01", "carol"), "ok");
    expect(harness_member_add(h, "none", "\x01", "carol"), "not_found");
    expect(harness_send(h, "c", "\x01", "x1", "welcome"), "ok 1 m-x1");
    expect(harness_send(h, "c", "\x01", "x1", "welcome"), "ok 1 m-x1 duplicate");
    expect(harness_send(h, "c", "alice", "x1", "hello"), "ok 2 m-x1");
    expect(harness_send(h, "none", "\x01", "x1", "welcome"), "not_found");
    expect(harness_after(h, "c", "carol", 0, 0), "ok c#1:\x01:welcome c#2:alice:hello /2");
}

void ledger_suite_deleted_message_leaves_a_tombstone(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "x1", "one");
    harness_send(h, "c", "bob", "x2", "two");
    expect(harness_message_delete(h, "c", 1), "ok changed");
    expect(harness_message_delete(h, "c", 1), "ok");
    expect(harness_message_delete(h, "c", 3), "not_found");
    expect(harness_message_delete(h, "none", 1), "not_found");
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice: c#2:bob:two /2");
    expect(harness_outbox(h, 0), "ok c#2:bob:two /0");
    expect(harness_send(h, "c", "alice", "x3", "three"), "ok 3 m-x3");
}

void ledger_suite_keys_are_stored_used_and_removed(void **state)
{
    struct harness *h = *state;
    expect(harness_keys(h), "ok");
    expect(harness_key_put(h, "shop", "hash-1", "service deliver"), "ok changed");
    expect(harness_key_put(h, "shop", "hash-1", "service deliver"), "ok");
    expect(harness_key_put(h, "shop", "hash-2", "service"), "conflict");
    expect(harness_key_put(h, "", "hash", "service"), "invalid");
    expect(harness_key_put(h, "x", "hash", ""), "invalid");
    expect(harness_key_put(h, "Admin", "hash-3", "admin"), "ok changed");
    expect(harness_keys(h), "ok Admin=hash-3(admin)5000/0 shop=hash-1(service deliver)5000/0");
    h->clock.wall_ms += 60000;
    expect(harness_key_used(h, "shop"), "ok changed");
    expect(harness_key_used(h, "nobody"), "ok");
    h->clock.wall_ms -= 1000;
    expect(harness_key_used(h, "shop"), "ok"); /* never back */
    expect(harness_keys(h), "ok Admin=hash-3(admin)5000/0 shop=hash-1(service deliver)5000/65000");
    expect(harness_key_delete(h, "shop"), "ok changed");
    expect(harness_key_delete(h, "shop"), "ok");
    expect(harness_keys(h), "ok Admin=hash-3(admin)5000/0");
    expect(harness_key_put(h, "shop", "hash-4", "service"), "ok changed");
}

void ledger_suite_revocations_are_listed_in_order_and_only_the_latest(void **state)
{
    struct harness *h = *state;
    expect(harness_revocations(h, 0, 0), "ok");
    expect(harness_revoke(h, "alice"), "ok @5");
    expect(harness_revoke(h, "bob"), "ok @5");
    expect(harness_revoke(h, "carol"), "ok @5");
    expect(harness_revocations(h, 0, 0), "ok alice@5 bob@5 carol@5");
    uint64_t carol = h->last_position;
    expect(harness_revocations(h, 0, 2), "ok alice@5 bob@5 more");
    expect(harness_revocations(h, h->last_position, 2), "ok carol@5");
    expect(harness_revocations(h, carol, 0), "ok");
    h->clock.wall_ms = 7999;
    expect(harness_revoke(h, "bob"), "ok @7");
    expect(harness_revocations(h, carol, 0), "ok bob@7");
    expect(harness_revocations(h, 0, 0), "ok alice@5 carol@5 bob@7");
    expect(harness_revoke(h, ""), "invalid");
}

void ledger_suite_revocation_never_moves_back(void **state)
{
    struct harness *h = *state;
    harness_revoke(h, "alice");
    expect(harness_revoke(h, "alice"), "ok @5");
    h->clock.wall_ms = 4000;
    expect(harness_revoke(h, "alice"), "ok @5");
    expect(harness_revocations(h, 0, 0), "ok alice@5");
}

/* ---- promises of the port ---- */

enum { BURST_REQUESTS = 2000 };

static void send_numbered(struct harness *h, const char *sender, int number)
{
    char id[32];
    int len = snprintf(id, sizeof(id), "%s-%d", sender, number);
    struct slice name = {id, (size_t)len};
    ledger_message_append(&h->client, SLICE("c"), slice_of(sender), name, name, SLICE("burst"),
                          harness_count_append, h);
}

/* Valid and refused requests share groups: those that fail do not affect the others. */
void ledger_suite_every_request_is_answered_once(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    unsigned before = h->answers;
    for (int i = 0; i < BURST_REQUESTS; i++)
        send_numbered(h, i % 4 == 3 ? "mallory" : "alice", i);
    assert_int_equal(h->answers, before); /* never from inside the function */
    harness_await(h, before + BURST_REQUESTS);
    harness_settle(h);
    assert_int_equal(h->answers, before + BURST_REQUESTS);
    assert_int_equal(h->statuses[LEDGER_NOT_FOUND], BURST_REQUESTS / 4);
    expect(harness_before(h, "c", "alice", 2, 1), "ok c#1:alice:burst /1500");
    expect(harness_repair(h, "c", false), "ok 1500/1500");
}

enum { SENDERS = 4, SENDER_MESSAGES = 250 };

static void *send_all(void *arg)
{
    struct harness *h = arg;
    char sender[16];
    snprintf(sender, sizeof(sender), "s%d", (int)h->clock.now_ms);
    for (int i = 0; i < SENDER_MESSAGES; i++)
        send_numbered(h, sender, i);
    while (h->answers < SENDER_MESSAGES)
        harness_turn(h, true);
    return NULL;
}

void ledger_suite_sequences_are_dense_under_concurrency(void **state)
{
    struct harness *h = *state;
    struct harness senders[SENDERS];
    pthread_t threads[SENDERS];
    harness_chat_create(h, "c", "alice", "s0,s1,s2,s3");
    for (int i = 0; i < SENDERS; i++) {
        harness_init(&senders[i], h->client.ledger);
        senders[i].clock.now_ms = i; /* also the name of its sender */
        pthread_create(&threads[i], NULL, send_all, &senders[i]);
    }
    for (int i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(senders[i].statuses[LEDGER_OK], SENDER_MESSAGES);
        harness_free(&senders[i]);
    }
    expect(harness_repair(h, "c", false), "ok 1000/1000");
    assert_non_null(strstr(harness_after(h, "c", "", 999, 5), " c#1000:s"));
}

/* ---- order ---- */

enum { ORDERED_MESSAGES = 500 };

struct ordered_send {
    struct harness *harness;
    uint64_t number; /* of this message, from 1 */
};

static void expect_in_order(void *arg, const struct ledger_append_outcome *outcome)
{
    struct ordered_send *send = arg;
    assert_int_equal(outcome->status, LEDGER_OK);
    assert_int_equal(outcome->sequence, send->number);
    assert_int_equal(send->harness->answers + 1, send->number);
    send->harness->answers++;
}

void ledger_suite_messages_of_one_sender_are_answered_in_order(void **state)
{
    struct harness *h = *state;
    struct ordered_send sends[ORDERED_MESSAGES];
    harness_chat_create(h, "c", "alice", "bob");
    h->answers = 0;
    for (unsigned i = 0; i < ORDERED_MESSAGES; i++) {
        char id[16];
        snprintf(id, sizeof(id), "%u", i);
        sends[i] = (struct ordered_send){h, i + 1};
        ledger_message_append(&h->client, SLICE("c"), SLICE("alice"), slice_of(id), slice_of(id),
                              SLICE("text"), expect_in_order, &sends[i]);
    }
    harness_await(h, ORDERED_MESSAGES);
}

void ledger_suite_late_answers_are_dropped(void **state)
{
    struct harness *h = *state;
    assert_int_equal(ledger_client_deadline_ms(&h->client), INT64_MAX);
    harness_chat_create(h, "c", "alice", "bob");
    unsigned before = h->answers;
    send_numbered(h, "alice", 1);
    assert_int_equal(ledger_client_deadline_ms(&h->client), h->clock.now_ms + LEDGER_TIME_LIMIT_MS);
    h->clock.now_ms += LEDGER_TIME_LIMIT_MS - 1;
    ledger_client_expire(&h->client);
    assert_int_equal(h->answers, before);
    h->clock.now_ms += 1;
    ledger_client_expire(&h->client);
    assert_int_equal(h->answers, before + 1);
    assert_int_equal(h->statuses[LEDGER_TIMEOUT], 1);
    harness_settle(h); /* the backend's own answer comes and is dropped */
    assert_int_equal(h->answers, before + 1);
    assert_int_equal(ledger_client_deadline_ms(&h->client), INT64_MAX);
}
