/* The conformance of users, contacts and blocks. */
#include "base/random.h"
#include "conformance/ledger_harness.h"
#include "conformance/ledger_suite_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

void ledger_suite_settings_have_defaults_and_change_separately(void **state)
{
    struct harness *h = *state;
    expect(harness_settings(h, "alice"), "ok contacts contacts was contacts contacts");
    expect(harness_set(h, "alice", "nobody", NULL), "ok nobody contacts was contacts contacts");
    expect(harness_set(h, "alice", NULL, "everyone"), "ok nobody everyone was nobody contacts");
    expect(harness_settings(h, "alice"), "ok nobody everyone was nobody everyone");
    expect(harness_settings(h, "bob"), "ok contacts contacts was contacts contacts");
}

void ledger_suite_profiles_show_settings_and_relations(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    harness_accept(h, "bob", "r1");
    harness_set(h, "bob", "everyone", NULL);
    harness_seen(h, "bob", 77, 3);
    harness_block(h, "alice", "carol");
    harness_block(h, "dave", "alice");
    expect(harness_profiles(h, "alice", "dave,bob,carol,bob"),
           "ok dave/contacts/contacts/blocked@0v0 bob/everyone/contacts/contact@77v3 "
           "carol/contacts/contacts/blocks@0v0 bob/everyone/contacts/contact@77v3");
    expect(harness_profiles(h, "carol", "alice"), "ok alice/contacts/contacts/blocked@0v0");
    expect(harness_profiles(h, "", "bob"), "ok bob/everyone/contacts@77v3");
    expect(harness_profiles(h, "alice", ""), "ok");
}

void ledger_suite_last_seen_and_version_never_decrease(void **state)
{
    struct harness *h = *state;
    expect(harness_seen(h, "alice", 100, 5), "ok changed");
    expect(harness_seen(h, "alice", 90, 4), "ok");
    expect(harness_profiles(h, "", "alice"), "ok alice/contacts/contacts@100v5");
    expect(harness_seen(h, "alice", 0, 6), "ok changed");
    expect(harness_profiles(h, "", "alice"), "ok alice/contacts/contacts@100v6");
    expect(harness_seen(h, "alice", 120, 2), "ok changed");
    expect(harness_profiles(h, "", "alice"), "ok alice/contacts/contacts@120v6");
    harness_set(h, "alice", "nobody", NULL);
    expect(harness_profiles(h, "", "alice"), "ok alice/nobody/contacts@120v6");
}

/* ---- many users ---- */

struct many_users {
    struct harness *harness;
    struct slice ids[LEDGER_PROFILES_MAX];
    struct ledger_last_seen seen[LEDGER_LAST_SEEN_BATCH_MAX];
    char names[LEDGER_PROFILES_MAX][16];
};

static void on_many_profiles(void *arg, const struct ledger_profiles_outcome *outcome)
{
    const struct many_users *many = arg;
    assert_int_equal(outcome->count, outcome->status == LEDGER_OK ? LEDGER_PROFILES_MAX : 0);
    for (size_t i = 0; i < outcome->count; i++) {
        bool is_seen = i < LEDGER_LAST_SEEN_BATCH_MAX;
        assert_true(slice_equal(outcome->profiles[i].user, many->ids[i]));
        assert_int_equal(outcome->profiles[i].last_seen_ms, is_seen ? 1000 + i : 0);
        assert_int_equal(outcome->profiles[i].presence_version, is_seen ? 1 + i : 0);
    }
    harness_count_change(many->harness, &(struct ledger_change_outcome){.status = outcome->status});
}

void ledger_suite_profiles_of_many_users_are_read_at_once(void **state)
{
    struct harness *h = *state;
    struct many_users *many = calloc(1, sizeof(*many));
    many->harness = h;
    for (int i = 0; i < LEDGER_PROFILES_MAX; i++) {
        snprintf(many->names[i], sizeof(many->names[i]), "user-%d", i);
        many->ids[i] = slice_of(many->names[i]);
        if (i < LEDGER_LAST_SEEN_BATCH_MAX)
            many->seen[i] = (struct ledger_last_seen){many->ids[i], 1000 + i, 1 + (uint64_t)i};
    }
    ledger_last_seen_put(&h->client, many->seen, LEDGER_LAST_SEEN_BATCH_MAX, harness_count_change,
                         h);
    harness_await(h, 1);
    ledger_profiles(&h->client, SLICE("alice"), many->ids, LEDGER_PROFILES_MAX, on_many_profiles,
                    many);
    harness_await(h, 2);
    assert_int_equal(h->statuses[LEDGER_OK], 2);
    free(many);
}

/* ---- reads during changes ---- */

static void on_relation_changed(void *arg, const struct ledger_contact_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

static void on_relation_blocked(void *arg, const struct ledger_block_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

static void on_relation_read(void *arg, const struct ledger_profiles_outcome *outcome)
{
    if (outcome->count > 0)
        assert_false(outcome->profiles[0].are_contacts && outcome->profiles[0].blocked_by_viewer);
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

/* A block ends the contact, so nobody ever sees both. */
void ledger_suite_relation_is_read_as_of_one_instant(void **state)
{
    enum { ROUNDS = 40, OPERATIONS = 6 };
    struct harness *h = *state;
    const struct slice alice = SLICE("alice"), bob = SLICE("bob");
    for (int i = 0; i < ROUNDS; i++) {
        ledger_contact_request_create(&h->client, SLICE("r1"), alice, bob, on_relation_changed, h);
        ledger_contact_request_create(&h->client, SLICE("r2"), bob, alice, on_relation_changed, h);
        ledger_profiles(&h->client, alice, &bob, 1, on_relation_read, h);
        ledger_block_put(&h->client, alice, bob, on_relation_blocked, h);
        ledger_profiles(&h->client, alice, &bob, 1, on_relation_read, h);
        ledger_block_delete(&h->client, alice, bob, harness_count_change, h);
    }
    harness_await(h, ROUNDS * OPERATIONS);
    assert_int_equal(h->statuses[LEDGER_OK] + h->statuses[LEDGER_FORBIDDEN], ROUNDS * OPERATIONS);
}

void ledger_suite_malformed_ids_are_refused(void **state)
{
    struct harness *h = *state;
    char longest[LEDGER_ID_BYTES_MAX + 2];
    memset(longest, 'x', sizeof(longest));
    longest[LEDGER_ID_BYTES_MAX + 1] = '\0';
    expect(harness_settings(h, ""), "invalid");
    expect(harness_settings(h, longest), "invalid");
    expect(harness_request_contact(h, "r1", "alice", longest), "invalid");
    expect(harness_request_contact(h, "r1", "alice", "alice"), "invalid");
    expect(harness_block(h, "alice", "alice"), "invalid");
    expect(harness_chat_create(h, "", "alice", "bob"), "invalid");
    expect(harness_chat_create(h, "c", "alice", longest), "invalid");
    longest[LEDGER_ID_BYTES_MAX] = '\0';
    expect(harness_settings(h, longest), "ok contacts contacts was contacts contacts");
    expect(harness_set(h, "o'; DROP TABLE users; --", "nobody", NULL),
           "ok nobody contacts was contacts contacts");
    expect(harness_settings(h, "o'; DROP TABLE users; --"),
           "ok nobody contacts was nobody contacts");
}

void ledger_suite_contact_request_is_accepted_once(void **state)
{
    struct harness *h = *state;
    expect(harness_request_contact(h, "r1", "alice", "bob"), "ok requested r1 alice>bob tell");
    expect(harness_request_contact(h, "r2", "alice", "bob"), "ok pending r1 alice>bob");
    expect(harness_contact_requests(h, "alice", LEDGER_OUTGOING, "", 0), "ok r1:alice>bob");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok r1:alice>bob");
    expect(harness_contact_requests(h, "bob", LEDGER_OUTGOING, "", 0), "ok");
    expect(harness_contacts(h, "alice"), "ok");
    expect(harness_accept(h, "bob", "r1"), "ok accepted r1 alice>bob tell");
    expect(harness_accept(h, "bob", "r1"), "ok already alice>bob");
    expect(harness_contacts(h, "alice"), "ok bob");
    expect(harness_contacts(h, "bob"), "ok alice");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_request_contact(h, "r3", "bob", "alice"), "ok already bob>alice");
    expect(harness_remove(h, "bob", "alice"), "ok changed");
    expect(harness_remove(h, "bob", "alice"), "ok");
    expect(harness_contacts(h, "alice"), "ok");
    expect(harness_contacts(h, "bob"), "ok");
    expect(harness_accept(h, "bob", "r1"), "not_found");
}

void ledger_suite_contact_request_is_declined_or_withdrawn(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    expect(harness_decline(h, "bob", "r1"), "ok declined r1 alice>bob tell");
    expect(harness_decline(h, "bob", "r1"), "not_found");
    expect(harness_contact_requests(h, "alice", LEDGER_OUTGOING, "", 0), "ok");
    expect(harness_request_contact(h, "r2", "alice", "bob"), "ok requested r2 alice>bob tell");
    expect(harness_withdraw(h, "alice", "r2"), "ok withdrawn r2 alice>bob tell");
    expect(harness_accept(h, "bob", "r2"), "not_found");
    expect(harness_contacts(h, "bob"), "ok");
}

void ledger_suite_crossing_contact_request_accepts_the_other(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    expect(harness_request_contact(h, "r2", "bob", "alice"), "ok accepted r1 alice>bob tell");
    expect(harness_contacts(h, "alice"), "ok bob");
    expect(harness_contacts(h, "bob"), "ok alice");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_contact_requests(h, "alice", LEDGER_INCOMING, "", 0), "ok");
}

void ledger_suite_contact_request_is_answered_only_by_its_owners(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    expect(harness_accept(h, "alice", "r1"), "not_found");
    expect(harness_accept(h, "carol", "r1"), "not_found");
    expect(harness_decline(h, "alice", "r1"), "not_found");
    expect(harness_withdraw(h, "bob", "r1"), "not_found");
    expect(harness_withdraw(h, "carol", "r1"), "not_found");
    expect(harness_accept(h, "bob", "r9"), "not_found");
    expect(harness_request_contact(h, "r1", "carol", "dave"), "conflict");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok r1:alice>bob");
}

/* Writes every answer that a user can get about another. */
static void write_all_answers(struct harness *h, const char *other, struct buffer *answers)
{
    char id[32];
    snprintf(id, sizeof(id), "r-%s", other);
    buffer_append_text(answers, harness_request_contact(h, id, "alice", other));
    buffer_append_text(answers, harness_request_contact(h, "again", "alice", other));
    buffer_append_text(answers, harness_contact_requests(h, "alice", LEDGER_OUTGOING, "", 0));
    buffer_append_text(answers, harness_contact_requests(h, "alice", LEDGER_INCOMING, "", 0));
    buffer_append_text(answers, harness_contacts(h, "alice"));
    buffer_append_text(answers, harness_accept(h, "alice", id));
    buffer_append_text(answers, harness_withdraw(h, "alice", id));
    buffer_append_text(answers, harness_withdraw(h, "alice", id));
    buffer_append_text(answers, harness_remove(h, "alice", other));
    buffer_append_byte(answers, '\0');
}

void ledger_suite_block_looks_like_no_answer_to_the_sender(void **state)
{
    struct harness *h = *state;
    struct buffer silent = BUFFER_INIT, blocking = BUFFER_INIT;
    write_all_answers(h, "xxx", &silent);
    harness_block(h, "yyy", "alice");
    write_all_answers(h, "yyy", &blocking);
    assert_non_null(strstr(silent.data, " tell"));
    assert_null(strstr(blocking.data, " tell"));
    static const size_t tell_len = sizeof(" tell") - 1;
    for (char *at = silent.data; (at = strstr(at, " tell"));)
        memmove(at, at + tell_len, strlen(at + tell_len) + 1);
    for (char *at = silent.data; (at = strstr(at, "xxx"));)
        memcpy(at, "yyy", 3);
    assert_string_equal(silent.data, blocking.data);
    buffer_free(&silent);
    buffer_free(&blocking);
}

void ledger_suite_block_ends_contact_and_hides_contact_requests(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "bob");
    harness_accept(h, "bob", "r1");
    expect(harness_block(h, "bob", "alice"), "ok changed parted");
    expect(harness_block(h, "bob", "alice"), "ok");
    expect(harness_contacts(h, "alice"), "ok");
    expect(harness_contacts(h, "bob"), "ok");
    expect(harness_blocks(h, "bob"), "ok alice");
    expect(harness_blocks(h, "alice"), "ok");
    expect(harness_request_contact(h, "r2", "bob", "alice"), "forbidden");

    harness_request_contact(h, "r3", "carol",
                            "dave"); /* pending when dave blocks: hidden, not deleted */
    expect(harness_block(h, "dave", "carol"), "ok changed");
    expect(harness_contact_requests(h, "dave", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_contact_requests(h, "carol", LEDGER_OUTGOING, "", 0), "ok r3:carol>dave");
    expect(harness_accept(h, "dave", "r3"), "not_found");
    expect(harness_decline(h, "dave", "r3"), "not_found");

    harness_request_contact(h, "r4", "erin", "frank"); /* withdrawn, since erin blocks */
    expect(harness_block(h, "erin", "frank"), "ok changed");
    expect(harness_contact_requests(h, "frank", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_contact_requests(h, "erin", LEDGER_OUTGOING, "", 0), "ok");
}

void ledger_suite_hidden_contact_request_is_shown_when_repeated_after_unblocking(void **state)
{
    struct harness *h = *state;
    harness_block(h, "bob", "alice");
    expect(harness_request_contact(h, "r1", "alice", "bob"), "ok requested r1 alice>bob");
    expect(harness_unblock(h, "bob", "alice"), "ok changed");
    expect(harness_unblock(h, "bob", "alice"), "ok");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok");
    expect(harness_request_contact(h, "r2", "alice", "bob"), "ok pending r1 alice>bob tell");
    expect(harness_request_contact(h, "r2", "alice", "bob"), "ok pending r1 alice>bob");
    expect(harness_contact_requests(h, "bob", LEDGER_INCOMING, "", 0), "ok r1:alice>bob");

    harness_block(h, "dave",
                  "carol"); /* a contact request by the user who unblocked accepts the hidden one */
    harness_request_contact(h, "r3", "carol", "dave");
    harness_unblock(h, "dave", "carol");
    expect(harness_request_contact(h, "r4", "dave", "carol"), "ok accepted r3 carol>dave tell");
}

void ledger_suite_contact_requests_are_paged(void **state)
{
    struct harness *h = *state;
    harness_request_contact(h, "r1", "alice", "zoe");
    harness_request_contact(h, "r3", "carol", "zoe");
    harness_request_contact(h, "r2", "bob", "zoe");
    harness_request_contact(h, "r4", "zoe", "dave");
    expect(harness_contact_requests(h, "zoe", LEDGER_INCOMING, "", 2),
           "ok r1:alice>zoe r2:bob>zoe more");
    expect(harness_contact_requests(h, "zoe", LEDGER_INCOMING, "r2", 2), "ok r3:carol>zoe");
    expect(harness_contact_requests(h, "zoe", LEDGER_INCOMING, "", 3),
           "ok r1:alice>zoe r2:bob>zoe r3:carol>zoe");
    expect(harness_contact_requests(h, "zoe", LEDGER_INCOMING, "r3", 2), "ok");
    expect(harness_contact_requests(h, "zoe", LEDGER_OUTGOING, "", 1), "ok r4:zoe>dave");
}

static void on_contact_answered(void *arg, const struct ledger_contact_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

void ledger_suite_outgoing_contact_requests_are_bounded(void **state)
{
    struct harness *h = *state;
    char other[32];
    for (int i = 0; i < LEDGER_CONTACT_REQUESTS_OUTGOING_MAX; i++) {
        snprintf(other, sizeof(other), "other-%d", i);
        ledger_contact_request_create(&h->client, slice_of(other), SLICE("alice"), slice_of(other),
                                      on_contact_answered, h);
    }
    harness_await(h, LEDGER_CONTACT_REQUESTS_OUTGOING_MAX);
    assert_int_equal(h->statuses[LEDGER_OK], LEDGER_CONTACT_REQUESTS_OUTGOING_MAX);
    expect(harness_request_contact(h, "one-more", "alice", "bob"), "limit");
    expect(harness_request_contact(h, "one-more", "alice", "other-7"),
           "ok pending other-7 alice>other-7");
    harness_withdraw(h, "alice", "other-7");
    expect(harness_request_contact(h, "one-more", "alice", "bob"),
           "ok requested one-more alice>bob tell");
}

/* ---- a model: contact requests, contacts and blocks as plain matrices ---- */

enum { MODEL_USERS = 4, MODEL_STEPS = 1500 };

struct model {
    bool contacts[MODEL_USERS][MODEL_USERS];
    bool blocks[MODEL_USERS][MODEL_USERS];
    bool requested[MODEL_USERS][MODEL_USERS];
    bool hidden[MODEL_USERS][MODEL_USERS];
};

static const char *const names[MODEL_USERS] = {"a", "b", "c", "d"};

static void set_model_contact(struct model *model, unsigned x, unsigned y, bool are_contacts)
{
    model->contacts[x][y] = model->contacts[y][x] = are_contacts;
}

static const char *model_request_contact(struct model *model, unsigned from, unsigned to)
{
    if (model->blocks[from][to])
        return "forbidden";
    if (model->contacts[from][to])
        return "ok already";
    if (model->requested[to][from]) {
        model->requested[to][from] = false;
        set_model_contact(model, from, to, true);
        return "ok accepted";
    }
    bool known = model->requested[from][to];
    model->requested[from][to] = true;
    model->hidden[from][to] = model->blocks[to][from];
    return known ? "ok pending" : "ok requested";
}

static const char *model_block(struct model *model, unsigned user, unsigned other)
{
    if (model->blocks[user][other])
        return "ok";
    model->blocks[user][other] = true;
    model->requested[user][other] = false;
    model->hidden[other][user] = true;
    bool parted = model->contacts[user][other];
    set_model_contact(model, user, other, false);
    return parted ? "ok changed parted" : "ok changed";
}

static const char *model_unblock(struct model *model, unsigned user, unsigned other)
{
    bool existed = model->blocks[user][other];
    model->blocks[user][other] = false;
    return existed ? "ok changed" : "ok";
}

static const char *model_remove(struct model *model, unsigned user, unsigned other)
{
    bool existed = model->contacts[user][other];
    set_model_contact(model, user, other, false);
    return existed ? "ok changed" : "ok";
}

static void check_user(struct harness *h, const struct model *model, unsigned user)
{
    char expected_contacts[64] = "ok";
    for (unsigned other = 0; other < MODEL_USERS; other++)
        if (model->contacts[user][other])
            snprintf(expected_contacts + strlen(expected_contacts), 16, " %s", names[other]);
    expect(harness_contacts(h, names[user]), expected_contacts);
    const char *listed = harness_contact_requests(h, names[user], LEDGER_INCOMING, "", 0);
    size_t shown = 0, expected = 0;
    for (const char *at = listed; *at; at++)
        shown += *at == '>';
    for (unsigned other = 0; other < MODEL_USERS; other++)
        expected += model->requested[other][user] && !model->hidden[other][user];
    assert_int_equal(shown, expected);
}

static void model_step(struct harness *h, struct model *model, struct random *random, int step)
{
    unsigned x = (unsigned)random_below(random, MODEL_USERS);
    unsigned y = (x + 1 + (unsigned)random_below(random, MODEL_USERS - 1)) % MODEL_USERS;
    char id[16];
    snprintf(id, sizeof(id), "r%d", step);
    const char *expected, *answer;
    switch (random_below(random, 6)) {
    case 0:
        expected = model_block(model, x, y);
        answer = harness_block(h, names[x], names[y]);
        break;
    case 1:
        expected = model_unblock(model, x, y);
        answer = harness_unblock(h, names[x], names[y]);
        break;
    case 2:
        expected = model_remove(model, x, y);
        answer = harness_remove(h, names[x], names[y]);
        break;
    default:
        expected = model_request_contact(model, x, y);
        answer = harness_request_contact(h, id, names[x], names[y]);
    }
    assert_int_equal(strncmp(answer, expected, strlen(expected)), 0);
    check_user(h, model, x);
    check_user(h, model, y);
}

void ledger_suite_contacts_match_a_model_over_random_steps(void **state)
{
    struct model model = {0};
    struct random random;
    random_init_seeded(&random, 7);
    for (int step = 0; step < MODEL_STEPS; step++)
        model_step(*state, &model, &random, step);
}
