/*
 * Two ledgers on the same tables, as two processes have them, change the same things at the same time. The server is named by
 * TEST_DYNAMODB (`make test-cloud` starts one).
 *
 * Operations on two users that run concurrently must give the answers, and leave the state, of some order of them one
 * after the other: every order is tried on a model.
 */
#include "base/random.h"
#include "conformance/ledger_harness.h"
#include "ledger/dynamodb/dynamodb_admin.h"
#include "ledger/dynamodb/dynamodb_ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { LEDGERS = 2, USER_TEXT_MAX = 16, STATE_TEXT_MAX = 128 };

static const struct config_dynamodb SETTINGS = {.retry = {3, 100, 5000},
                                                .transaction_conflict = {5, 50}};

struct race {
    struct ledger *ledgers[LEDGERS];
    struct harness harnesses[LEDGERS];
};

static int open_race(void **state)
{
    struct race *race = calloc(1, sizeof(*race));
    char url[512], error[DYNAMODB_LEDGER_ERROR_TEXT_MAX];
    static unsigned opened;
    snprintf(url, sizeof(url), "dynamodb://local?endpoint=%s&prefix=race%d-%u-",
             getenv("TEST_DYNAMODB"), (int)getpid(), opened++);
    if (!dynamodb_admin_create_tables(url, error))
        fail_msg("%s", error);
    for (unsigned i = 0; i < LEDGERS; i++) {
        race->ledgers[i] = dynamodb_ledger_open(url, &SETTINGS, error);
        assert_non_null(race->ledgers[i]);
        harness_init(&race->harnesses[i], race->ledgers[i]);
    }
    *state = race;
    return 0;
}

static int close_race(void **state)
{
    struct race *race = *state;
    for (unsigned i = 0; i < LEDGERS; i++) {
        ledger_close(&race->ledgers[i]);
        harness_free(&race->harnesses[i]);
    }
    free(race);
    return 0;
}

/* ---- a model of two users ---- */

enum race_kind { CREATE, ACCEPT, DECLINE, WITHDRAW, BLOCK, UNBLOCK, REMOVE, KIND_COUNT };

/* What an operation answered. */
struct race_answer {
    enum ledger_status status;
    int result;   /* of a contact request */
    bool tells;   /* the other side */
    bool changes; /* a contact or a block */
    bool parts;
};

struct race_pair {
    bool are_contacts;
    bool blocks[2];
    bool is_pending;
    bool is_hidden;
    int sender;
    int request; /* the number of the pending contact request, or of the one that led to the contact */
};

struct race_operation {
    enum race_kind kind;
    int user;    /* 0 or 1 */
    int request; /* the number of the contact request to create or answer */
    struct race_answer answer;
    struct harness *harness;
};

static struct race_answer accept_in_model(struct race_pair *pair)
{
    pair->are_contacts = true;
    pair->is_pending = pair->is_hidden = false;
    return (struct race_answer){.result = LEDGER_CONTACT_ACCEPTED, .tells = true};
}

static struct race_answer create_in_model(struct race_pair *pair, int user, int request)
{
    if (pair->blocks[user])
        return (struct race_answer){.status = LEDGER_FORBIDDEN};
    if (pair->are_contacts)
        return (struct race_answer){.result = LEDGER_CONTACT_ALREADY};
    if (pair->is_pending && pair->sender != user)
        return accept_in_model(pair);
    if (pair->is_pending) {
        bool reveals = pair->is_hidden && !pair->blocks[!user];
        pair->is_hidden &= !reveals;
        return (struct race_answer){.result = LEDGER_CONTACT_PENDING, .tells = reveals};
    }
    pair->is_pending = true;
    pair->is_hidden = pair->blocks[!user];
    pair->sender = user;
    pair->request = request;
    return (struct race_answer){.result = LEDGER_CONTACT_REQUESTED, .tells = !pair->is_hidden};
}

static struct race_answer answer_in_model(struct race_pair *pair,
                                          const struct race_operation *operation)
{
    bool is_it = pair->request == operation->request;
    bool is_sender = pair->sender == operation->user;
    bool is_incoming = is_it && pair->is_pending && !is_sender && !pair->is_hidden;
    struct race_answer ended = {.tells = !pair->is_hidden,
                                .result = operation->kind == DECLINE ? LEDGER_CONTACT_DECLINED
                                                                     : LEDGER_CONTACT_WITHDRAWN};
    if (operation->kind == ACCEPT && is_incoming)
        return accept_in_model(pair);
    if (operation->kind == ACCEPT && is_it && pair->are_contacts)
        return (struct race_answer){.result = LEDGER_CONTACT_ALREADY};
    if ((operation->kind == DECLINE && is_incoming) ||
        (operation->kind == WITHDRAW && is_it && pair->is_pending && is_sender)) {
        pair->is_pending = pair->is_hidden = false;
        return ended;
    }
    return (struct race_answer){.status = LEDGER_NOT_FOUND};
}

static struct race_answer block_in_model(struct race_pair *pair, int user)
{
    struct race_answer answer = {.changes = !pair->blocks[user], .parts = pair->are_contacts};
    if (pair->blocks[user])
        return (struct race_answer){0};
    pair->blocks[user] = true;
    pair->are_contacts = false;
    if (pair->is_pending && pair->sender == user)
        pair->is_pending = pair->is_hidden = false;
    pair->is_hidden = pair->is_pending;
    return answer;
}

static struct race_answer clear_in_model(bool *value)
{
    struct race_answer answer = {.changes = *value};
    *value = false;
    return answer;
}

static struct race_answer run_in_model(struct race_pair *pair,
                                       const struct race_operation *operation)
{
    switch (operation->kind) {
    case CREATE:
        return create_in_model(pair, operation->user, operation->request);
    case BLOCK:
        return block_in_model(pair, operation->user);
    case UNBLOCK:
        return clear_in_model(&pair->blocks[operation->user]);
    case REMOVE:
        return clear_in_model(&pair->are_contacts);
    default:
        return answer_in_model(pair, operation);
    }
}

/* ---- the same in the ledgers ---- */

static void count_answer(struct race_operation *operation, struct race_answer answer)
{
    operation->answer = answer;
    harness_count_change(operation->harness,
                         &(struct ledger_change_outcome){.status = answer.status});
}

static void on_race_contact(void *arg, const struct ledger_contact_outcome *outcome)
{
    count_answer(arg, (struct race_answer){.status = outcome->status,
                                           .result = (int)outcome->result,
                                           .tells = outcome->tell_other_side});
}

static void on_race_block(void *arg, const struct ledger_block_outcome *outcome)
{
    count_answer(arg, (struct race_answer){.status = outcome->status,
                                           .changes = outcome->changed,
                                           .parts = outcome->contact_removed});
}

static void on_race_change(void *arg, const struct ledger_change_outcome *outcome)
{
    count_answer(arg, (struct race_answer){.status = outcome->status, .changes = outcome->changed});
}

/* The users of a round, "a7" and "b7", and contact requests, "7-1". */
static void name_user(char text[USER_TEXT_MAX], int round, int user)
{
    snprintf(text, USER_TEXT_MAX, "%c%d", user ? 'b' : 'a', round);
}

static void start_in_ledger(struct race_operation *operation, int round)
{
    struct ledger_client *client = &operation->harness->client;
    char user_text[USER_TEXT_MAX], other_text[USER_TEXT_MAX], id_text[USER_TEXT_MAX];
    name_user(user_text, round, operation->user);
    name_user(other_text, round, !operation->user);
    snprintf(id_text, sizeof(id_text), "%d-%d", round, operation->request);
    struct slice user = slice_of(user_text), other = slice_of(other_text), id = slice_of(id_text);
    switch (operation->kind) {
    case CREATE:
        ledger_contact_request_create(client, id, user, other, on_race_contact, operation);
        break;
    case ACCEPT:
        ledger_contact_request_accept(client, user, id, on_race_contact, operation);
        break;
    case DECLINE:
        ledger_contact_request_decline(client, user, id, on_race_contact, operation);
        break;
    case WITHDRAW:
        ledger_contact_request_withdraw(client, user, id, on_race_contact, operation);
        break;
    case BLOCK:
        ledger_block_put(client, user, other, on_race_block, operation);
        break;
    case UNBLOCK:
        ledger_block_delete(client, user, other, on_race_change, operation);
        break;
    default:
        ledger_contact_remove(client, user, other, on_race_change, operation);
    }
}

/* ---- the state afterwards ---- */

static void describe_model(const struct race_pair *pair, char text[STATE_TEXT_MAX])
{
    text[0] = '\0';
    for (int user = 0; user < 2; user++) {
        bool sent = pair->is_pending && pair->sender == user;
        bool received = pair->is_pending && pair->sender != user && !pair->is_hidden;
        snprintf(text + strlen(text), STATE_TEXT_MAX - strlen(text),
                 "%d contacts, %d blocks, %d blocked by, %d sent, %d received; ",
                 pair->are_contacts, pair->blocks[user], pair->blocks[!user], sent, received);
    }
}

static int count_in(const char *line, char sign)
{
    int count = 0;
    for (; *line; line++)
        count += *line == sign;
    return count;
}

/* Reads the lists, which are stored apart from the relation. */
static void describe_ledger(struct harness *harness, int round, char text[STATE_TEXT_MAX])
{
    text[0] = '\0';
    for (int user = 0; user < 2; user++) {
        char name[USER_TEXT_MAX], other[USER_TEXT_MAX];
        name_user(name, round, user);
        name_user(other, round, !user);
        int contacts = count_in(harness_contacts(harness, name), ' ');
        int blocks = count_in(harness_blocks(harness, name), ' ');
        bool blocked = strstr(harness_profiles(harness, name, other), "/blocked@") != NULL;
        int sent = count_in(harness_contact_requests(harness, name, LEDGER_OUTGOING, "", 0), '>');
        int received =
            count_in(harness_contact_requests(harness, name, LEDGER_INCOMING, "", 0), '>');
        snprintf(text + strlen(text), STATE_TEXT_MAX - strlen(text),
                 "%d contacts, %d blocks, %d blocked by, %d sent, %d received; ", contacts, blocks,
                 blocked, sent, received);
    }
}

/* ---- races ---- */

enum { ROUNDS = 60, OPERATIONS = 3, PENDING_REQUEST = 9 };

static bool is_answer_same(struct race_answer a, struct race_answer b)
{
    return a.status == b.status && a.result == b.result && a.tells == b.tells &&
           a.changes == b.changes && a.parts == b.parts;
}

static bool explains(struct race_pair pair, const struct race_operation *operations,
                     const unsigned *order, const char *found)
{
    char expected[STATE_TEXT_MAX];
    for (unsigned i = 0; i < OPERATIONS; i++)
        if (!is_answer_same(run_in_model(&pair, &operations[order[i]]),
                            operations[order[i]].answer))
            return false;
    describe_model(&pair, expected);
    return strcmp(expected, found) == 0;
}

static bool some_order_explains(struct race_pair before, const struct race_operation *operations,
                                const char *found)
{
    static const unsigned orders[][OPERATIONS] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (unsigned i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (explains(before, operations, orders[i], found))
            return true;
    return false;
}

/* Begins with nothing, with a contact request, with a contact or with a block. */
static struct race_pair prepare_pair(struct race *race, int round, unsigned kind)
{
    struct race_operation steps[] = {{.kind = CREATE, .request = PENDING_REQUEST},
                                     {.kind = ACCEPT, .user = 1, .request = PENDING_REQUEST},
                                     {.kind = BLOCK, .user = 1}};
    struct race_pair pair = {0};
    for (unsigned i = 0; i < kind; i++) {
        steps[i].harness = &race->harnesses[0];
        start_in_ledger(&steps[i], round);
        harness_await(steps[i].harness, steps[i].harness->answers + 1);
        assert_true(is_answer_same(run_in_model(&pair, &steps[i]), steps[i].answer));
    }
    return pair;
}

static void print_race(const struct race_operation *operations, const char *found)
{
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct race_answer *answer = &operations[i].answer;
        print_error("kind %d by %d: %s, result %d, tells %d, changes %d, parts %d\n",
                    (int)operations[i].kind, operations[i].user, ledger_status_name(answer->status),
                    answer->result, answer->tells, answer->changes, answer->parts);
    }
    print_error("then %s\n", found);
}

static void test_races_end_as_some_order_of_their_operations(void **state)
{
    struct race *race = *state;
    struct random random;
    random_init_seeded(&random, 14);
    for (int round = 0; round < ROUNDS; round++) {
        struct race_operation operations[OPERATIONS] = {{0}};
        char found[STATE_TEXT_MAX];
        struct race_pair before = prepare_pair(race, round, (unsigned)random_below(&random, 4));
        for (unsigned i = 0; i < OPERATIONS; i++) {
            enum race_kind kind = (enum race_kind)random_below(&random, KIND_COUNT);
            operations[i] = (struct race_operation){
                .kind = kind,
                .user = (int)random_below(&random, 2),
                .request = kind == CREATE ? (int)i : PENDING_REQUEST,
                .harness = &race->harnesses[i % LEDGERS],
            };
        }
        for (unsigned i = 0; i < OPERATIONS; i++)
            start_in_ledger(&operations[i], round);
        for (unsigned i = 0; i < LEDGERS; i++)
            harness_settle(&race->harnesses[i]);
        describe_ledger(&race->harnesses[0], round, found);
        bool is_explained = some_order_explains(before, operations, found);
        if (!is_explained)
            print_race(operations, found);
        assert_true(is_explained);
    }
}

static void on_race_revoked(void *arg, const struct ledger_revoke_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status});
}

/* Reads the revocations that are new to the reader, and returns how many. */
static int read_on(struct harness *reader)
{
    return count_in(harness_revocations(reader, reader->last_position, 0), '@');
}

/* Whoever reads on from the last position misses none, although two ledgers add some meanwhile. */
static void test_reader_of_revocations_misses_none(void **state)
{
    enum { REVOCATIONS = 60 };
    struct race *race = *state;
    struct harness *first = &race->harnesses[0], *second = &race->harnesses[1], reader;
    char user[USER_TEXT_MAX];
    int seen = 0;
    harness_init(&reader, race->ledgers[0]);
    for (int i = 0; i < REVOCATIONS; i++) {
        struct harness *h = &race->harnesses[i % LEDGERS];
        name_user(user, i, 0);
        ledger_revoke(&h->client, slice_of(user), on_race_revoked, h);
    }
    while (first->client.outstanding + second->client.outstanding > 0) {
        harness_turn(first, false);
        harness_turn(second, false);
        seen += read_on(&reader);
    }
    seen += read_on(&reader);
    assert_int_equal(first->statuses[LEDGER_OK] + second->statuses[LEDGER_OK], REVOCATIONS);
    assert_int_equal(seen, REVOCATIONS);
    harness_free(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_races_end_as_some_order_of_their_operations, open_race,
                                        close_race),
        cmocka_unit_test_setup_teardown(test_reader_of_revocations_misses_none, open_race,
                                        close_race),
    };
    if (!getenv("TEST_DYNAMODB")) {
        puts("TEST_DYNAMODB names no server: make test-cloud starts one");
        return 1;
    }
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
