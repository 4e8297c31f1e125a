/* The conformance of chats and calls. */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
           "ok everyone nobody contacts:bob,carol blocked:mallory blocked_by: chats:c2");
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
    expect(harness_chat_create(h, "c1", "bob", "alice"), "conflict");
    expect(harness_chat_create(h, "c1", "mallory", "alice,bob,carol"), "conflict");
    expect(harness_chat_create(h, "c2", "alice", ""), "ok created c2 by alice (1 alice) 0/0");
}

void ledger_suite_creator_repeats_a_creation_after_members_changed(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob,carol");
    harness_member_add(h, "c1", "alice", "dave");
    harness_member_remove(h, "c1", "carol", "carol");
    expect(harness_chat_create(h, "c1", "alice", "bob,carol"),
           "ok c1 by alice (3 alice bob dave) 0/0");
    expect(harness_chat_create(h, "c1", "alice", ""), "ok c1 by alice (3 alice bob dave) 0/0");
    expect(harness_chat_create(h, "c1", "bob", "alice,carol"), "conflict");
    expect(harness_member(h, "c1", "carol"), "not_found");
    harness_block(h, "bob", "alice");
    expect(harness_chat_create(h, "c1", "alice", "bob,carol"),
           "ok c1 by alice (3 alice bob dave) 0/0");
    harness_member_remove(h, "c1", "alice", "alice");
    expect(harness_chat_create(h, "c1", "alice", "bob,carol"), "conflict");
}

void ledger_suite_reserved_chat_ids_are_refused(void **state)
{
    struct harness *h = *state;
    harness_direct(h, "direct-1", "alice", "bob");
    expect(harness_chat_create(h, "direct", "alice", "bob"), "invalid");
    expect(harness_chat_create(h, "direct-2", "alice", "bob"), "invalid");
    expect(harness_chat_create(h, "direct-1", "mallory", ""), "invalid");
    expect(harness_chat_create(h, "direct-1", "alice", "bob"), "invalid");
    expect(harness_chat_create(h, "alice:bob", "mallory", ""), "invalid");
    expect(harness_chat_create(h, "redirect", "alice", ""),
           "ok created redirect by alice (1 alice) 0/0");
}

void ledger_suite_direct_chat_belongs_to_two_users(void **state)
{
    struct harness *h = *state;
    expect(harness_direct(h, "direct-1", "bob", "alice"),
           "ok created direct-1 by bob (2 alice bob) 0/0");
    expect(harness_direct(h, "direct-2", "alice", "bob"), "ok direct-1 by bob (2 alice bob) 0/0");
    expect(harness_direct(h, "direct-3", "bob", "alice"), "ok direct-1 by bob (2 alice bob) 0/0");
    expect(harness_direct(h, "direct-4", "alice", "carol"),
           "ok created direct-4 by alice (2 alice carol) 0/0");
    expect(harness_direct(h, "direct-5", "alice", "alice"), "invalid");
    expect(harness_chat(h, "direct-2", ""), "not_found");
    expect(harness_chat_roles(h, "direct-1", "alice"), "ok direct admins:");
    expect(harness_chat(h, "direct-1", "carol"), "not_found");
    expect(harness_member_add(h, "direct-1", "bob", "carol"), "forbidden");
    expect(harness_member_add(h, "direct-1", "carol", "carol"), "not_found");
    expect(harness_member_remove(h, "direct-1", "bob", "alice"), "forbidden");
    expect(harness_member_remove(h, "direct-1", "bob", "bob"), "forbidden");
    expect(harness_admin(h, "direct-1", "bob", "bob", true), "forbidden");
    expect(harness_chat_change(h, "direct-1", "bob", true), "forbidden");
    expect(harness_send(h, "direct-1", "alice", "x1", "hello"), "ok 1 m-x1");
    harness_block(h, "bob", "alice");
    expect(harness_direct(h, "direct-6", "alice", "bob"), "forbidden");
    expect(harness_direct(h, "direct-6", "bob", "alice"), "forbidden");
    expect(harness_send(h, "direct-1", "alice", "x2", "why"), "forbidden");
    harness_block(h, "dave", "alice");
    expect(harness_direct(h, "direct-7", "alice", "dave"), "forbidden");
    harness_unblock(h, "dave", "alice");
    expect(harness_direct(h, "direct-8", "dave", "alice"),
           "ok created direct-8 by dave (2 alice dave) 0/0");
}

void ledger_suite_chat_is_open_to_members_only(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    expect(harness_chat(h, "c1", "bob"), "ok c1 by alice (2 alice bob) 0/0");
    expect(harness_chat(h, "c1", ""), "ok c1 by alice (2 alice bob) 0/0");
    expect(harness_chat(h, "c1", "carol"), "not_found");
    expect(harness_chat(h, "c9", "carol"), "not_found");
    expect(harness_chat(h, "c9", ""), "not_found");
    expect(harness_member(h, "c1", "alice"), "ok");
    expect(harness_member(h, "c1", "carol"), "not_found");
    expect(harness_member(h, "c9", "alice"), "not_found");
    expect(harness_member_add(h, "c1", "carol", "carol"), "not_found");
    expect(harness_member_add(h, "c9", "carol", "carol"), "not_found");
    expect(harness_member_add(h, "c1", "bob", "carol"), "ok changed");
    expect(harness_member_add(h, "c1", "bob", "carol"), "ok");
    expect(harness_chat(h, "c1", "carol"), "ok c1 by alice (3 alice bob carol) 0/0");
    expect(harness_member_remove(h, "c1", "mallory", "bob"), "not_found");
    expect(harness_member_remove(h, "c1", "carol", "bob"), "forbidden");
    expect(harness_member_remove(h, "c1", "alice", "bob"), "ok changed");
    expect(harness_member_remove(h, "c1", "alice", "bob"), "ok");
    expect(harness_member_remove(h, "c1", "bob", "bob"), "not_found");
    expect(harness_member_remove(h, "c1", "carol", "carol"), "ok changed");
    expect(harness_member_remove(h, "c1", "alice", "alice"), "ok changed");
    expect(harness_chat(h, "c1", ""), "ok c1 by alice (0) 0/0");
    expect(harness_chat_create(h, "c1", "mallory", ""), "conflict");
    expect(harness_chat_create(h, "c1", "alice", ""), "conflict");
}

void ledger_suite_admins_have_rights_in_groups(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob,carol");
    expect(harness_chat_roles(h, "c1", "bob"), "ok group admins:alice open");
    expect(harness_admin(h, "c1", "bob", "bob", true), "forbidden");
    expect(harness_admin(h, "c1", "mallory", "mallory", true), "not_found");
    expect(harness_admin(h, "c9", "mallory", "mallory", true), "not_found");
    expect(harness_admin(h, "c1", "alice", "mallory", true), "not_found");
    expect(harness_admin(h, "c1", "alice", "bob", true), "ok changed");
    expect(harness_admin(h, "c1", "alice", "bob", true), "ok");
    expect(harness_chat_roles(h, "c1", "carol"), "ok group admins:alice,bob open");
    expect(harness_chat_change(h, "c1", "carol", false), "forbidden");
    expect(harness_chat_change(h, "c1", "mallory", false), "not_found");
    expect(harness_chat_change(h, "c1", "bob", false), "ok group admins:alice,bob");
    expect(harness_member_add(h, "c1", "carol", "dave"), "forbidden");
    expect(harness_member_add(h, "c1", "bob", "dave"), "ok changed");
    expect(harness_chat_change(h, "c1", "bob", true), "ok group admins:alice,bob open");
    expect(harness_member_add(h, "c1", "carol", "erin"), "ok changed");
    expect(harness_admin(h, "c1", "carol", "alice", false), "forbidden");
    expect(harness_admin(h, "c1", "bob", "alice", false), "ok changed");
    expect(harness_admin(h, "c1", "bob", "bob", false), "forbidden");
    expect(harness_admin(h, "c1", "bob", "mallory", false), "not_found");
    expect(harness_chat_roles(h, "c1", "alice"), "ok group admins:bob open");
}

void ledger_suite_longest_member_becomes_admin_when_the_last_leaves(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "dave");
    h->clock.wall_ms += 10;
    harness_member_add(h, "c1", "alice", "carol");
    h->clock.wall_ms += 10;
    harness_member_add(h, "c1", "alice", "bob");
    harness_member_remove(h, "c1", "dave", "dave");
    expect(harness_member_remove(h, "c1", "alice", "alice"), "ok changed admin carol");
    expect(harness_chat_roles(h, "c1", "bob"), "ok group admins:carol open");
    harness_admin(h, "c1", "carol", "bob", true);
    expect(harness_member_remove(h, "c1", "carol", "carol"), "ok changed");
    expect(harness_member_remove(h, "c1", "bob", "bob"), "ok changed");
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

void ledger_suite_only_contacts_add_who_asks_for_it(void **state)
{
    struct harness *h = *state;
    harness_consent(h, "bob", "contacts", NULL);
    expect(harness_chat_create(h, "c1", "alice", "carol,bob"), "forbidden");
    expect(harness_chat(h, "c1", ""), "not_found");
    expect(harness_chat_create(h, "c1", "alice", "carol"),
           "ok created c1 by alice (2 alice carol) 0/0");
    expect(harness_member_add(h, "c1", "alice", "bob"), "forbidden");
    expect(harness_chat_create(h, "c2", "bob", "alice"), "ok created c2 by bob (2 alice bob) 0/0");
    expect(harness_direct(h, "direct-1", "alice", "bob"),
           "ok created direct-1 by alice (2 alice bob) 0/0");
    harness_request_contact(h, "r1", "alice", "bob");
    harness_accept(h, "bob", "r1");
    expect(harness_member_add(h, "c1", "alice", "bob"), "ok changed");
    expect(harness_chat_create(h, "c3", "alice", "bob"),
           "ok created c3 by alice (2 alice bob) 0/0");
    expect(harness_member_add(h, "c1", "carol", "bob"), "ok");
}

void ledger_suite_chats_are_paged_by_activity(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c1", "alice", "bob");
    harness_chat_create(h, "c2", "bob", "alice,carol");
    h->clock.wall_ms += 1000;
    harness_chat_create(h, "c3", "alice", "bob");
    harness_chat_create(h, "c4", "bob", "carol");
    int64_t later_ms = h->clock.wall_ms;
    expect(harness_chats(h, "alice", "", 0, 2, false),
           "ok c3 by alice (2) 0/0 c2 by bob (3) 0/0 more");
    expect(harness_chats(h, "alice", "c2", later_ms - 1000, 2, true),
           "ok c1 by alice (2 alice bob) 0/0");
    expect(harness_chats(h, "alice", "c2", LEDGER_ACTIVITY_NOW, 2, false),
           "ok c1 by alice (2) 0/0");
    expect(harness_chats(h, "alice", "c4", LEDGER_ACTIVITY_NOW, 1, false),
           "ok c3 by alice (2) 0/0 more");
    h->clock.wall_ms += 1000;
    harness_send(h, "c1", "bob", "x1", "hello");
    expect(harness_chats(h, "alice", "", 0, 0, true),
           "ok c1 by alice (2 alice bob) 1/1 c3 by alice (2 alice bob) 0/0 "
           "c2 by bob (3 alice bob carol) 0/0");
    expect(harness_chats(h, "alice", "c3", later_ms, 2, false), "ok c2 by bob (3) 0/0");
    h->clock.wall_ms -= 5000; /* a clock that goes back moves no chat down */
    harness_send(h, "c1", "bob", "x2", "again");
    expect(harness_chats(h, "alice", "", 0, 1, false), "ok c1 by alice (2) 2/2 more");
    expect(harness_chats(h, "nobody", "", 0, 2, true), "ok");
}

/* Hours pass between messages, and one chat is too large for its members' rows to be kept in order. */
void ledger_suite_order_of_chats_matches_a_model(void **state)
{
    enum { CHATS = 12, STEPS = 150, MEMBERS = 120 };
    struct harness *h = *state;
    int64_t activity_ms[CHATS];
    unsigned random = 7;
    char id[16], client_id[16];
    for (int i = 0; i < CHATS; i++) {
        snprintf(id, sizeof(id), "c%02d", i);
        harness_chat_create(h, id, "alice", "bob");
        activity_ms[i] = h->clock.wall_ms;
    }
    for (int i = 0; i < MEMBERS; i++) {
        snprintf(id, sizeof(id), "member-%d", i);
        harness_member_add(h, "c05", "alice", id);
    }
    for (int step = 0; step < STEPS; step++) {
        random = random * 1103515245 + 12345;
        int at = (int)(random >> 16) % CHATS;
        h->clock.wall_ms += (random >> 8) % (90 * 60 * 1000);
        snprintf(id, sizeof(id), "c%02d", at);
        snprintf(client_id, sizeof(client_id), "s%d", step);
        harness_send(h, id, "bob", client_id, "text");
        activity_ms[at] = h->clock.wall_ms;
        const char *line = harness_chats(h, "alice", "", 0, 3, false);
        int latest = 0, rank_of_first = 0;
        for (int i = 1; i < CHATS; i++)
            latest = activity_ms[i] >= activity_ms[latest] ? i : latest;
        snprintf(id, sizeof(id), "ok c%02d ", latest);
        assert_memory_equal(line, id, strlen(id));
        /* every chat appears once over pages of three, by falling activity */
        char after[16] = "";
        int64_t after_ms = 0, last_ms = INT64_MAX;
        for (int page = 0; page < CHATS / 3; page++) {
            line = harness_chats(h, "alice", after, after_ms, 3, false);
            for (const char *found = strstr(line, " c"); found; found = strstr(found + 1, " c")) {
                int index = atoi(found + 2);
                assert_true(activity_ms[index] <= last_ms);
                last_ms = after_ms = activity_ms[index];
                snprintf(after, sizeof(after), "c%02d", index);
                rank_of_first++;
            }
        }
        assert_int_equal(rank_of_first, CHATS);
        assert_null(strstr(line, "more"));
    }
}

void ledger_suite_forced_chats_displace_no_accepted_chat(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "carol");
    harness_accept(h, "carol", "r1");
    harness_chat_create(h, "own", "alice", "mallory");
    harness_chat_create(h, "contact", "carol", "alice");
    harness_chat_create(h, "written", "dave", "alice");
    harness_send(h, "written", "alice", "x1", "hello");
    h->clock.wall_ms += 1000;
    harness_chat_create(h, "forced1", "mallory", "alice");
    harness_chat_create(h, "forced2", "mallory", "alice");
    harness_send(h, "forced1", "mallory", "x1", "spam");
    expect(harness_graph(h, "alice", 4), "ok contacts contacts contacts:carol blocked: blocked_by: "
                                         "chats:contact,forced2,own,written");
    expect(harness_graph(h, "alice", 2),
           "ok contacts contacts contacts:carol blocked: blocked_by: chats:own,written");
    expect(harness_chats(h, "alice", "", 0, 1, false), "ok forced2 by mallory (2) 0/0 more");
    harness_send(h, "forced1", "alice", "x2", "go away");
    expect(harness_graph(h, "alice", 1),
           "ok contacts contacts contacts:carol blocked: blocked_by: chats:forced1");
}

void ledger_suite_read_marks_are_shown_as_the_reader_wants(void **state)
{
    struct harness *h = *state;
    harness_chat_create(h, "c", "alice", "bob,carol");
    for (char id[2] = "1"; id[0] <= '5'; id[0]++)
        harness_send(h, "c", "alice", id, id);
    expect(harness_cursor(h, "c", "bob", "phone", 2), "ok changed read 2 shown");
    expect(harness_cursor(h, "c", "bob", "desk", 1), "ok changed");
    expect(harness_chat_roles(h, "c", "alice"), "ok group admins:alice open bob:::2");
    harness_block(h, "carol", "bob");
    expect(harness_cursor(h, "c", "bob", "phone", 3), "ok changed read 3 shown not carol");
    expect(harness_cursor(h, "c", "carol", "phone", 3), "ok changed read 3 shown not bob");
    expect(harness_chat_roles(h, "c", "carol"), "ok group admins:alice open carol:::3");
    expect(harness_chat_roles(h, "c", "bob"), "ok group admins:alice open bob:::3");
    expect(harness_chat_roles(h, "c", "alice"), "ok group admins:alice open bob:::3 carol:::3");
    expect(harness_consent(h, "bob", NULL, "hides"), "ok everyone hides \"\" <>");
    expect(harness_cursor(h, "c", "bob", "phone", 4), "ok changed read 4");
    expect(harness_chat_roles(h, "c", "alice"), "ok group admins:alice open carol:::3");
    expect(harness_chat_roles(h, "c", "bob"), "ok group admins:alice open bob:::4");
}

void ledger_suite_members_see_names_and_pictures(void **state)
{
    struct harness *h = *state;
    expect(harness_appear(h, "bob", "Bob", NULL), "ok everyone shows \"Bob\" <>");
    expect(harness_appear(h, "bob", NULL, "http://b"), "ok everyone shows \"Bob\" <http://b>");
    expect(harness_set(h, "bob", "nobody", NULL), "ok nobody contacts was contacts contacts");
    harness_chat_create(h, "c", "alice", "bob,carol");
    expect(harness_chat_roles(h, "c", "alice"), "ok group admins:alice open bob:Bob:http://b:0");
    expect(harness_appearances(h, "alice,bob"), "ok \"\" <> \"Bob\" <http://b>");
    expect(harness_appear(h, "bob", "", ""), "ok everyone shows \"\" <>");
    expect(harness_chat_roles(h, "c", "alice"), "ok group admins:alice open");
}

/* ---- large groups ---- */

static void expect_prefix(const char *answer, const char *text)
{
    if (strncmp(answer, text, strlen(text)) != 0)
        fail_msg("\"%s\" does not begin with \"%s\"", answer, text);
}

/* A backend may store a group of this size in another way. */
void ledger_suite_group_of_many_members_is_like_a_small_one(void **state)
{
    enum { MEMBERS = 70 };
    struct harness *h = *state;
    struct buffer members = BUFFER_INIT;
    for (int i = 0; i < MEMBERS; i++)
        buffer_printf(&members, "%smember-%02d", i ? "," : "", i);
    buffer_append_byte(&members, '\0');
    harness_block(h, "member-69", "alice");
    expect(harness_chat_create(h, "c", "alice", members.data), "forbidden");
    expect(harness_chats(h, "member-01", "", 0, 0, false), "ok");
    harness_unblock(h, "member-69", "alice");
    expect_prefix(harness_chat_create(h, "c", "alice", members.data),
                  "ok created c by alice (71 alice member-00 member-01 ");
    expect_prefix(harness_chat_create(h, "c", "alice", members.data), "ok c by alice (71 alice ");
    expect_prefix(harness_chat_create(h, "c", "member-00", members.data), "conflict");
    members.data[members.len - sizeof(",member-69")] = '\0';
    expect(harness_chat_create(h, "c", "member-05", members.data), "conflict");
    buffer_free(&members);
    expect_prefix(harness_chat(h, "c", "member-69"), "ok c by alice (71 alice member-00 ");
    expect(harness_chat(h, "c", "mallory"), "not_found");
    expect(harness_member(h, "c", "member-33"), "ok");
    expect(harness_member(h, "c", "mallory"), "not_found");
    expect(harness_send(h, "c", "member-33", "x1", "hello"), "ok 1 m-x1");
    expect(harness_send(h, "c", "mallory", "x1", "hello"), "not_found");
    expect(harness_after(h, "c", "member-01", 0, 0), "ok c#1:member-33:hello /1");
    expect(harness_after(h, "c", "mallory", 0, 0), "not_found");
    expect(harness_cursor(h, "c", "member-01", "phone", 1), "ok changed read 1 shown");
    expect(harness_cursor(h, "c", "mallory", "phone", 1), "not_found");
    expect(harness_chats(h, "member-01", "", 0, 0, false), "ok c by alice (71) 0/1");
    expect(harness_graph(h, "member-33", 1),
           "ok contacts contacts contacts: blocked: blocked_by: chats:c");
    expect(harness_chat_roles(h, "c", "member-02"), "ok group admins:alice open member-01:::1");
    expect(harness_admin(h, "c", "alice", "member-40", true), "ok changed");
    expect(harness_admin(h, "c", "alice", "member-40", false), "ok changed");
    expect(harness_member_add(h, "c", "member-10", "zoe"), "ok changed");
    expect(harness_member_remove(h, "c", "member-01", "member-01"), "ok changed");
    expect(harness_chats(h, "member-01", "", 0, 0, false), "ok");
    expect(harness_send(h, "c", "member-01", "x2", "gone"), "not_found");
    expect(harness_chats(h, "zoe", "", 0, 0, false), "ok c by alice (71) 1/1");
    expect(harness_member_remove(h, "c", "alice", "alice"), "ok changed admin member-00");
    expect(harness_chat_roles(h, "c", "zoe"), "ok group admins:member-00 open");
    expect_prefix(harness_chat(h, "c", ""), "ok c by alice (70 member-00 member-02 ");
}

/* ---- bounds ---- */

enum { REPETITIONS_MAX = 10 };

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
    unsigned unknown, repetitions = 0;
    do { /* as callers do whose time was up: a large chat is continued */
        unknown = h->statuses[LEDGER_TIMEOUT] + h->statuses[LEDGER_UNAVAILABLE];
        ledger_chat_create(&h->client, slice_of(chat), SLICE("alice"), members, count, true,
                           on_large_chat_created, h);
        harness_await(h, h->answers + 1);
    } while (h->statuses[LEDGER_TIMEOUT] + h->statuses[LEDGER_UNAVAILABLE] > unknown &&
             ++repetitions < REPETITIONS_MAX);
    free(members);
    free(ids);
}

static void on_chats_listed(void *arg, const struct ledger_chats_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
    assert_int_equal(outcome->count, 2); /* a third chat would exceed the bound on listed members */
    assert_true(outcome->has_more);
    assert_true(
        slice_is(outcome->chats[1].id, "full2")); /* by falling id, in the same millisecond */
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
    struct ledger_chats_cursor start = {0};
    ledger_chats_list(&h->client, SLICE("alice"), &start, 10, true, on_chats_listed, h);
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
