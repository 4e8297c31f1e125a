/* The conformance of changes that the application makes to relations (ledger_relations.h). */
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

void ledger_suite_application_makes_and_ends_contacts(void **state)
{
    struct harness *h = *state;
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob,carol,alice,bob,alice"),
           "ok ok/changed ok/changed ok");
    expect(harness_contacts(h, "alice"), "ok bob carol");
    expect(harness_contacts(h, "bob"), "ok alice");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob"), "ok ok");
    expect(harness_relations(h, LEDGER_CONTACT_END, "bob,alice,bob,dave"),
           "ok ok/changed/removed ok");
    expect(harness_contacts(h, "alice"), "ok carol");
    expect(harness_contacts(h, "bob"), "ok");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob"), "ok ok/changed");
    expect(harness_remove(h, "bob", "alice"), "ok changed");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, ""), "ok");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob,eve,eve"), "invalid");
    expect(harness_contacts(h, "bob"), "ok");
}

void ledger_suite_application_blocks_for_a_user(void **state)
{
    struct harness *h = *state;
    harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob");
    expect(harness_relations(h, LEDGER_BLOCK_MAKE, "bob,alice,bob,carol,bob,alice"),
           "ok ok/changed/removed ok/changed ok");
    expect(harness_blocks(h, "bob"), "ok alice carol");
    expect(harness_contacts(h, "alice"), "ok");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob,bob,alice,alice,carol"),
           "ok forbidden forbidden ok/changed");
    harness_unblock(h, "bob", "alice");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "alice,bob"), "ok ok/changed");
}

/* Whoever accepts a contact request that the application has made a contact of finds the contact. */
void ledger_suite_contact_of_the_application_settles_contact_requests(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "bob,alice"), "ok ok/changed");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_contact_requests(h, "alice", LEDGER_OUTGOING, "", 0), "ok");
    expect(harness_accept(h, "bob", "r1"), "ok already alice>bob");
    expect(harness_request_contact(h, "r2", "bob", "alice"), "ok already bob>alice");
    expect(harness_relations(h, LEDGER_CONTACT_END, "alice,bob"), "ok ok/changed/removed");
    expect(harness_request_contact(h, "r3", "bob", "alice"), "ok requested r3 bob>alice tell");
    expect(harness_accept(h, "alice", "r3"), "ok accepted r3 bob>alice tell");
}

static void on_contacts_made(void *arg, const struct ledger_relations_outcome *outcome)
{
    struct ledger_change_outcome change = {.status = outcome->status};
    for (size_t i = 0; i < outcome->count; i++)
        assert_int_equal(outcome->results[i].status, LEDGER_OK);
    harness_count_change(arg, &change);
}

void ledger_suite_contacts_of_the_application_are_bounded(void **state)
{
    struct harness *h = *state;
    static char names[LEDGER_RELATIONS_MAX + 1][16];
    struct slice ids[2 * (LEDGER_RELATIONS_MAX + 1)];
    unsigned requests = 0;
    for (int made = 0; made < LEDGER_CONTACTS_MAX;) {
        size_t count = 0;
        for (; count < LEDGER_RELATIONS_MAX && made < LEDGER_CONTACTS_MAX; count++, made++) {
            snprintf(names[count], sizeof(names[count]), "user-%d", made);
            ids[2 * count] = SLICE("alice");
            ids[2 * count + 1] = slice_of(names[count]);
        }
        ledger_relations_change(&h->client, SLICE("application"), LEDGER_CONTACT_MAKE, ids, count,
                                on_contacts_made, h);
        harness_await(h, ++requests);
    }
    assert_int_equal(h->statuses[LEDGER_OK], requests);
    expect(harness_relations(h, LEDGER_CONTACT_MAKE, "bob,alice,bob,carol,alice,user-7"),
           "ok limit ok/changed ok");
    for (size_t i = 0; i <= LEDGER_RELATIONS_MAX; i++) {
        ids[2 * i] = SLICE("alice");
        ids[2 * i + 1] = SLICE("bob");
    }
    unsigned answers = h->answers;
    ledger_relations_change(&h->client, SLICE("application"), LEDGER_CONTACT_MAKE, ids,
                            LEDGER_RELATIONS_MAX + 1, on_contacts_made, h);
    harness_await(h, answers + 1);
    assert_int_equal(h->statuses[LEDGER_LIMIT], 1);
}
