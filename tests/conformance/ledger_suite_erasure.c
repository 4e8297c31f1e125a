/* The conformance of erasing what a user has left behind (ledger_erasure.h). */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

void ledger_suite_messages_of_a_user_become_tombstones(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "alice", "1", "one");
    harness_send(h, "c", "bob", "1", "two");
    harness_send(h, "c", "alice", "2", "three");
    expect(harness_erase(h, "c", "alice"), "ok");
    expect(harness_after(h, "c", "bob", 0, 0), "ok c#1:alice: c#2:bob:two c#3:alice: /3");
    expect(harness_outbox(h, 0), "ok c#2:bob:two /0");
    expect(harness_member(h, "c", "alice"), "ok");
    expect(harness_erase(h, "c", "alice"), "ok");
    harness_send(h, "c", "alice", "1", "anew");
    expect(harness_after(h, "c", "bob", 3, 0), "ok c#4:alice:anew /4");
    expect(harness_erase(h, "nowhere", "alice"), "ok");
    expect(harness_erase(h, "c", ""), "invalid");
}

void ledger_suite_many_messages_are_erased_in_slices(void **state)
{
    struct harness *h = *state;
    char id[16];
    harness_chat_create(h, "c", "alice", "bob");
    for (int i = 0; i < LEDGER_ERASED_MESSAGES_MAX + 1; i++) {
        snprintf(id, sizeof(id), "m%d", i);
        harness_send(h, "c", "alice", id, "secret");
    }
    expect(harness_erase(h, "c", "alice"), "ok changed");
    expect(harness_erase(h, "c", "alice"), "ok");
    const char *page = harness_after(h, "c", "bob", 0, 0);
    assert_null(strstr(page, "secret"));
    assert_non_null(strstr(page, "c#129:alice: /129"));
}

void ledger_suite_erased_user_leaves_direct_chats(void **state)
{
    struct harness *h = *state;
    harness_direct(h, "direct-1", "alice", "bob");
    harness_send(h, "direct-1", "alice", "1", "one");
    expect(harness_erase(h, "direct-1", "alice"), "ok");
    expect(harness_member(h, "direct-1", "alice"), "not_found");
    expect(harness_chats(h, "alice", "", 0, 0, false), "ok");
    expect(harness_after(h, "direct-1", "bob", 0, 0), "ok direct-1#1:alice: /1");
    expect(harness_direct(h, "direct-2", "bob", "alice"),
           "ok created direct-2 by bob (2 alice bob) 0/0");
}

void ledger_suite_chats_that_were_left_are_found_and_erased(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "bob", "1", "one");
    harness_send(h, "c", "alice", "1", "two");
    expect(harness_former_chats(h, "bob", "", 0), "ok");
    harness_member_remove(h, "c", "bob", "bob");
    expect(harness_former_chats(h, "bob", "", 0), "ok c");
    expect(harness_former_chats(h, "alice", "", 0), "ok");
    expect(harness_erase(h, "c", "bob"), "ok");
    expect(harness_former_chats(h, "bob", "", 0), "ok");
    expect(harness_after(h, "c", "alice", 0, 0), "ok c#1:bob: c#2:alice:two /2");
}

void ledger_suite_chat_of_a_user_who_came_back_is_not_former(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob");
    harness_send(h, "c", "bob", "1", "one");
    harness_member_remove(h, "c", "alice", "bob");
    expect(harness_former_chats(h, "bob", "", 0), "ok c");
    harness_member_add(h, "c", "alice", "bob");
    expect(harness_former_chats(h, "bob", "", 0), "ok");
    harness_member_remove(h, "c", "bob", "bob");
    expect(harness_former_chats(h, "bob", "", 0), "ok c");
}

void ledger_suite_former_chats_are_paged(void **state)
{
    struct harness *h = *state;
    const char *const chats[] = {"c1", "c2", "c3"};
    for (size_t i = 0; i < 3; i++) {
        harness_chat_create(h, chats[i], "alice", "bob");
        harness_send(h, chats[i], "bob", "1", "one");
        harness_member_remove(h, chats[i], "bob", "bob");
    }
    expect(harness_former_chats(h, "bob", "", 2), "ok c1 c2");
    expect(harness_former_chats(h, "bob", "c2", 2), "ok c3");
    expect(harness_former_chats(h, "bob", "c3", 2), "ok");
    expect(harness_former_chats(h, "", "", 2), "invalid");
}

void ledger_suite_calls_and_last_seen_are_forgotten(void **state)
{
    struct harness *h = *state;
    harness_call(h, "k1", "alice", "bob", 100);
    harness_seen(h, "alice", 77, 3);
    expect(harness_forget(h, "alice"), "ok changed");
    expect(harness_calls(h, "alice", 0), "ok");
    expect(harness_calls(h, "bob", 0), "ok k1:alice>bob:hangup:100");
    expect(harness_profiles(h, "", "alice"), "ok alice/contacts/contacts@0v3");
    harness_seen(h, "alice", 88, 4);
    expect(harness_profiles(h, "", "alice"), "ok alice/contacts/contacts@88v4");
    assert_memory_equal(harness_forget(h, "nobody"), "ok", 2);
}
