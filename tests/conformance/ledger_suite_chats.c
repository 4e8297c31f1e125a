/* The conformance of chats and calls. */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void ledger_suite_graph_lists_settings_contacts_blocks_and_chats(void **state)
{
    struct harness *h = *state;
    expect(harness_graph(h, "alice", 10),
           "ok contacts contacts contacts: blocked: blocked_by: chats:");
    harness_request_contact(h, "r1", "alice", "carol");
    harness_accept(h, "carol", "r1");
    harness_request_contact(h, "r2", "bob", "alice");
    harness_accept(h, "alice", "r2");
    harness_block(h, "alice", "mallory");
    harness_set(h, "alice", "everyone", "nobody");
    harness_chat_create(h, "c2", "alice", "bob");
    harness_chat_create(h, "c1", "carol", "alice");
    expect(harness_graph(h, "alice", 10),
           "ok everyone nobody contacts:bob,carol blocked:mallory blocked_by: chats:c1,c2");
    expect(harness_graph(h, "alice", 1),
           "ok everyone nobody contacts:bob,carol blocked:mallory blocked_by: chats:c1");
    expect(harness_graph(h, "mallory", 10),
           "ok contacts contacts contacts: blocked: blocked_by:alice chats:");
    expect(harness_graph(h, "", 10), "invalid");
}

void ledger_suite_chat_is_created_once(void **state)
{
    struct harness *h = *state;
    expect(harness_chat_create(h, "c1", "alice", "bob,carol,bob,alice"),
           "ok created c1 by alice (3 alice bob carol) 0/0");
    expect(harness_chat_create(h, "c1", "alice", "carol,bob"),
           "ok c1 by alice (3 alice bob carol) 0/0");
    expect(harness_chat_create(h, "c1", "bob", "alice,carol"),
           "ok c1 by alice (3 alice bob carol) 0/0");
    expect(harness_chat_create(h, "c1", "alice", "bob"), "conflict");
    expect(harness_chat_create(h, "c1", "mallory", "alice,bob,carol"), "conflict");
    expect(harness_chat_create(h, "c2", "alice", ""), "ok created c2 by alice (1 alice) 0/0");
}

void ledger_suite_chat_is_open_to_members_only(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    expect(harness_chat(h, "c1", "bob"), "ok c1 by alice (2 alice bob) 0/0");
    expect(harness_chat(h, "c1", ""), "ok c1 by alice (2 alice bob) 0/0");
    expect(harness_chat(h, "c1", "carol"), "forbidden");
    expect(harness_chat(h, "c9", "carol"), "not_found");
    expect(harness_chat(h, "c9", ""), "not_found");
    expect(harness_member(h, "c1", "alice"), "ok");
    expect(harness_member(h, "c1", "carol"), "forbidden");
    expect(harness_member(h, "c9", "alice"), "not_found");
    expect(harness_member_add(h, "c1", "carol", "carol"), "forbidden");
    expect(harness_member_add(h, "c9", "carol", "carol"), "not_found");
    expect(harness_member_add(h, "c1", "bob", "carol"), "ok changed");
    expect(harness_member_add(h, "c1", "bob", "carol"), "ok");
    expect(harness_chat(h, "c1", "carol"), "ok c1 by alice (3 alice bob carol) 0/0");
    expect(harness_member_remove(h, "c1", "mallory", "bob"), "forbidden");
    expect(harness_member_remove(h, "c1", "carol", "bob"), "ok changed");
    expect(harness_member_remove(h, "c1", "carol", "bob"), "ok");
    expect(harness_member_remove(h, "c1", "bob", "bob"), "forbidden");
    expect(harness_member_remove(h, "c1", "carol", "carol"), "ok changed");
    expect(harness_member_remove(h, "c1", "alice", "alice"), "ok changed");
    expect(harness_chat(h, "c1", ""), "ok c1 by alice (0) 0/0");
    expect(harness_chat_create(h, "c1", "mallory", ""), "conflict");
}

void ledger_suite_block_between_members_prevents_a_chat(void **state)
{
    struct harness *h = *state;
    harness_block(h, "bob", "alice");
    expect(harness_chat_create(h, "c1", "alice", "carol,bob"), "forbidden");
    expect(harness_chat_create(h, "c1", "bob", "alice"), "forbidden");
    expect(harness_chat(h, "c1", ""), "not_found");
    expect(harness_chat_create(h, "c1", "alice", "carol"),
           "ok created c1 by alice (2 alice carol) 0/0");
    expect(harness_member_add(h, "c1", "alice", "bob"), "forbidden");
    expect(harness_member_add(h, "c1", "carol", "bob"), "ok changed");
}

void ledger_suite_chats_are_paged(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    harness_chat_create(h, "c3", "alice", "bob");
    harness_chat_create(h, "c2", "bob", "alice,carol");
    harness_chat_create(h, "c4", "bob", "carol");
    expect(harness_chats(h, "alice", "", 2, false),
           "ok c1 by alice (2) 0/0 c2 by bob (3) 0/0 more");
    expect(harness_chats(h, "alice", "c2", 2, true), "ok c3 by alice (2 alice bob) 0/0");
    expect(harness_chats(h, "alice", "", 0, true),
           "ok c1 by alice (2 alice bob) 0/0 c2 by bob (3 alice bob carol) 0/0 "
           "c3 by alice (2 alice bob) 0/0");
    expect(harness_chats(h, "alice", "c3", 2, true), "ok");
    expect(harness_chats(h, "nobody", "", 2, true), "ok");
}

/* ---- bounds ---- */

static void on_large_chat_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
    if (outcome->status == LEDGER_OK)
        assert_int_equal(outcome->chat.member_count, LEDGER_CHAT_MEMBERS_MAX);
}

static void make_large_chat(struct harness *h, const char *chat, size_t count)
{
    char(*ids)[16] = calloc(count, sizeof(*ids));
    struct slice *members = calloc(count, sizeof(*members));
    assert_true(ids && members);
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(ids[i], sizeof(ids[i]), "member-%zu", i);
        members[i] = (struct slice){ids[i], (size_t)len};
    }
    unsigned answers = h->answers;
    ledger_chat_create(&h->client, slice_of(chat), SLICE("alice"), members, count,
                       on_large_chat_created, h);
    free(members);
    free(ids);
    harness_await(h, answers + 1);
}

static void on_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
    assert_int_equal(outcome->count, 2); /* a third chat would exceed the bound on listed members */
    assert_true(outcome->has_more);
    assert_true(slice_is(outcome->chats[1].id, "full2"));
}

void ledger_suite_chat_members_are_bounded(void **state)
{
    struct harness *h = *state;
    make_large_chat(h, "over", LEDGER_CHAT_MEMBERS_MAX + 1);
    make_large_chat(h, "over", LEDGER_CHAT_MEMBERS_MAX); /* the creator is one more */
    assert_int_equal(h->statuses[LEDGER_LIMIT], 2);
    expect(harness_chat(h, "over", ""), "not_found");
    make_large_chat(h, "full1", LEDGER_CHAT_MEMBERS_MAX - 1);
    make_large_chat(h, "full2", LEDGER_CHAT_MEMBERS_MAX - 1);
    make_large_chat(h, "full3", LEDGER_CHAT_MEMBERS_MAX - 1);
    expect(harness_member_add(h, "full1", "alice", "bob"), "limit");
    harness_member_remove(h, "full1", "alice", "member-17");
    expect(harness_member_add(h, "full1", "alice", "bob"), "ok changed");
    ledger_chats_list(&h->client, SLICE("alice"), SLICE_NONE, 10, true, on_chats_listed, h);
    harness_await(h, h->answers + 1);
}

void ledger_suite_call_is_kept_for_both_users(void **state)
{
    struct harness *h = *state;
    expect(harness_call(h, "k1", "alice", "bob", 100), "ok changed");
    expect(harness_call(h, "k1", "alice", "bob", 100), "ok");
    expect(harness_call(h, "k2", "bob", "alice", 300), "ok changed");
    expect(harness_call(h, "k3", "alice", "carol", 200), "ok changed");
    expect(harness_calls(h, "alice", 0), "ok k2:bob>alice:hangup:300 k3:alice>carol:hangup:200 "
                                         "k1:alice>bob:hangup:100");
    expect(harness_calls(h, "bob", 1), "ok k2:bob>alice:hangup:300");
    expect(harness_calls(h, "dave", 0), "ok");
}

/* Anybody who may call a user must not be able to push the calls of others out of the user's history. */
void ledger_suite_unanswered_calls_of_one_caller_are_bounded(void **state)
{
    struct harness *h = *state;
    enum { CALLS = LEDGER_CALLS_UNANSWERED_MAX + 5 };
    char id[16];
    harness_call(h, "first", "alice", "bob", 1);
    for (int i = 0; i < CALLS; i++) {
        snprintf(id, sizeof(id), "k%d", i);
        struct ledger_call call = {.id = slice_of(id),
                                   .caller = SLICE("carol"),
                                   .callee = SLICE("bob"),
                                   .reason = SLICE("busy"),
                                   .ended_at_ms = 1000 + i,
                                   .kept_max = LEDGER_CALLS_UNANSWERED_MAX + 1};
        ledger_call_append(&h->client, &call, harness_count_change, h);
        harness_await(h, h->answers + 1);
    }
    for (int user = 0; user < 2; user++) {
        harness_calls(h, user ? "bob" : "carol", LEDGER_PAGE_MAX);
        assert_null(strstr(h->line.data, " k4:"));
        assert_non_null(strstr(h->line.data, " k5:"));
    }
    assert_non_null(strstr(h->line.data, " first:"));
}

void ledger_suite_calls_are_bounded(void **state)
{
    struct harness *h = *state;
    char id[16];
    for (int i = 0; i < LEDGER_CALLS_KEPT_MAX; i++) {
        snprintf(id, sizeof(id), "k%d", i);
        struct ledger_call call = {
            slice_of(id), SLICE("alice"), SLICE("bob"), SLICE("hangup"), i, i, 1000 + i, 0};
        ledger_call_append(&h->client, &call, harness_count_change, h);
    }
    harness_await(h, LEDGER_CALLS_KEPT_MAX);
    harness_call(h, "late", "alice", "carol", 9999);
    harness_calls(h, "alice", LEDGER_PAGE_MAX);
    assert_non_null(strstr(h->line.data, " late:"));
    assert_null(strstr(h->line.data, " k0:"));
    assert_non_null(strstr(h->line.data, " k1:"));
    harness_calls(h, "bob", LEDGER_PAGE_MAX);
    assert_non_null(strstr(h->line.data, " k0:"));
    struct ledger_call last = {.id = SLICE("last"),
                               .caller = SLICE("carol"),
                               .callee = SLICE("bob"),
                               .reason = SLICE("busy"),
                               .ended_at_ms = 99999,
                               .kept_max = 3};
    ledger_call_append(&h->client, &last, harness_count_change, h);
    harness_await(h, h->answers + 1);
    harness_calls(h, "bob", LEDGER_PAGE_MAX);
    assert_non_null(strstr(h->line.data, " last:"));
    assert_non_null(strstr(h->line.data, " k998:"));
    assert_null(strstr(h->line.data, " k997:"));
}
