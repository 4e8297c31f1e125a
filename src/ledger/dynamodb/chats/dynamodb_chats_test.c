/*
 * Chats on DynamoDB beyond what every backend promises: two processes change the same chat at once, and a process is killed while
 * it creates a large group. The server is named by TEST_DYNAMODB (`make test-cloud` starts one).
 */
#include "conformance/ledger_harness.h"
#include "ledger/dynamodb/chats/dynamodb_test_chats.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define expect(answer, text) assert_string_equal(answer, text)

enum { LEDGERS = 2, TEXT_MAX = 64, ROUNDS = 10 };

/* Two ledgers on the same tables, as two processes have them. */
struct fixture {
    struct dynamodb_test_server server;
    struct ledger *ledgers[LEDGERS];
    struct harness harnesses[LEDGERS];
};

static struct fixture *make_fixture(void)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    dynamodb_test_server_make_tables(&fixture->server);
    return fixture;
}

static void open_ledgers(struct fixture *fixture)
{
    for (int i = 0; i < LEDGERS; i++) {
        fixture->ledgers[i] = dynamodb_test_server_open(&fixture->server);
        harness_init(&fixture->harnesses[i], fixture->ledgers[i]);
    }
}

static int set_up(void **state)
{
    struct fixture *fixture = make_fixture();
    open_ledgers(fixture);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    for (int i = 0; i < LEDGERS; i++) {
        ledger_close(&fixture->ledgers[i]);
        harness_free(&fixture->harnesses[i]);
    }
    free(fixture);
    return 0;
}

static void check_tables(struct fixture *fixture)
{
    dynamodb_test_chats_check(&fixture->server, &fixture->harnesses[0].client);
}

/* ---- two operations at once ---- */

/* Runs on a thread of its own; `side` is 0 or 1. */
typedef const char *(*race_step)(struct harness *harness, int side, int round);

struct racer {
    pthread_t thread;
    pthread_barrier_t *start;
    struct harness *harness;
    race_step step;
    int side;
    int round;
    const char *answer;
};

static void *run_racer(void *arg)
{
    struct racer *racer = arg;
    pthread_barrier_wait(racer->start);
    racer->answer = racer->step(racer->harness, racer->side, racer->round);
    return NULL;
}

/* Runs the step on both ledgers at once. The answers last until the next operations. */
static void race(struct fixture *fixture, race_step step, int round, const char *answers[LEDGERS])
{
    struct racer racers[LEDGERS];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, LEDGERS);
    for (int side = 0; side < LEDGERS; side++) {
        racers[side] = (struct racer){.start = &start,
                                      .harness = &fixture->harnesses[side],
                                      .step = step,
                                      .side = side,
                                      .round = round};
        assert_int_equal(pthread_create(&racers[side].thread, NULL, run_racer, &racers[side]), 0);
    }
    for (int side = 0; side < LEDGERS; side++) {
        pthread_join(racers[side].thread, NULL);
        answers[side] = racers[side].answer;
    }
    pthread_barrier_destroy(&start);
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int count_starting(const char *const answers[LEDGERS], const char *prefix)
{
    return starts_with(answers[0], prefix) + starts_with(answers[1], prefix);
}

/* ---- creating ---- */

static const char *create_same_group(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX];
    (void)side;
    snprintf(id, sizeof(id), "same%d", round);
    return harness_chat_create(harness, id, "alice", "bob,carol");
}

static const char *create_own_group(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX];
    snprintf(id, sizeof(id), "own%d", round);
    return harness_chat_create(harness, id, side ? "alice" : "dave", "bob");
}

static void test_group_is_created_by_one_of_two(void **state)
{
    struct fixture *fixture = *state;
    const char *answers[LEDGERS];
    for (int round = 0; round < ROUNDS; round++) {
        race(fixture, create_same_group, round, answers);
        assert_int_equal(count_starting(answers, "ok created same"), 1);
        assert_int_equal(count_starting(answers, "ok same"), 1);
        race(fixture, create_own_group, round, answers);
        assert_int_equal(count_starting(answers, "ok created own"), 1);
        assert_int_equal(count_starting(answers, "conflict"), 1);
    }
    check_tables(fixture);
}

static const char *open_direct_chat(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX], user[TEXT_MAX];
    snprintf(id, sizeof(id), "direct-%d-%d", round, side);
    snprintf(user, sizeof(user), "user%d", round);
    return harness_direct(harness, id, side ? user : "alice", side ? "alice" : user);
}

static void test_two_users_who_open_at_once_get_one_direct_chat(void **state)
{
    struct fixture *fixture = *state;
    const char *answers[LEDGERS];
    for (int round = 0; round < ROUNDS; round++) {
        race(fixture, open_direct_chat, round, answers);
        assert_int_equal(count_starting(answers, "ok created direct-"), 1);
        int first = starts_with(answers[0], "ok created") ? 0 : 1;
        expect(answers[!first] + strlen("ok "), answers[first] + strlen("ok created "));
    }
    check_tables(fixture);
}

/* ---- large groups ---- */

static void on_group_created(void *arg, const struct ledger_chat_outcome *outcome)
{
    harness_count_change(arg, &(struct ledger_change_outcome){.status = outcome->status,
                                                              .changed = outcome->created});
}

/* Creates a group of alice and members "PREFIX-0", "PREFIX-1", … Repeats it while its time is up. */
static enum ledger_status create_large_group(struct harness *harness, const char *id,
                                             const char *prefix, size_t count)
{
    enum { REPETITIONS_MAX = 10 };
    char(*names)[TEXT_MAX] = calloc(count, sizeof(*names));
    struct slice *members = calloc(count, sizeof(*members));
    enum ledger_status status = LEDGER_TIMEOUT;
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(names[i], TEXT_MAX, "%s-%zu", prefix, i);
        members[i] = (struct slice){names[i], (size_t)len};
    }
    for (int i = 0; i < REPETITIONS_MAX && status == LEDGER_TIMEOUT; i++) {
        unsigned before[LEDGER_STATUS_COUNT];
        memcpy(before, harness->statuses, sizeof(before));
        ledger_chat_create(&harness->client, slice_of(id), SLICE("alice"), members, count, true,
                           on_group_created, harness);
        harness_await(harness, harness->answers + 1);
        for (status = 0; harness->statuses[status] == before[status];)
            status++;
    }
    free(members);
    free(names);
    return status;
}

static const char *create_large_own_group(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX], prefix[TEXT_MAX];
    snprintf(id, sizeof(id), "large%d", round);
    snprintf(prefix, sizeof(prefix), "%d-of-%d", round, side);
    return ledger_status_name(create_large_group(harness, id, prefix, 100 + (size_t)side));
}

/* The creator of both is alice, so the second gets the group of the first: the members are of one request only. */
static void test_drafts_of_one_group_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    const char *answers[LEDGERS];
    for (int round = 0; round < 3; round++) {
        char id[TEXT_MAX], outsider[TEXT_MAX];
        race(fixture, create_large_own_group, round, answers);
        expect(answers[0], "ok");
        expect(answers[1], "ok");
        snprintf(id, sizeof(id), "large%d", round);
        const char *chat = harness_chat(&fixture->harnesses[0], id, "");
        bool is_first = strstr(chat, "-of-0-") != NULL;
        assert_int_equal(is_first, strstr(chat, "-of-1-") == NULL);
        assert_non_null(strstr(chat, is_first ? " (101 " : " (102 "));
        snprintf(outsider, sizeof(outsider), "%d-of-%d-7", round, is_first);
        expect(harness_chats(&fixture->harnesses[0], outsider, "", 0, 1, false), "ok");
        expect(harness_member_add(&fixture->harnesses[1], id, "alice", outsider), "ok changed");
    }
    check_tables(fixture);
}

enum { KILLED_GROUP_MEMBERS = 4000, POLL_US = 2000, POLLS_MAX = 30000 };

static void create_group_in_child(const struct fixture *fixture)
{
    struct harness harness;
    harness_init(&harness, dynamodb_test_server_open(&fixture->server));
    create_large_group(&harness, "big", "member", KILLED_GROUP_MEMBERS);
    for (;;)
        pause(); /* until it is killed */
}

static bool has_staged_items(const struct fixture *fixture)
{
    const char *answer = dynamodb_test_server_call(
        &fixture->server, "Query",
        "{'TableName':'@chats','Limit':1,'KeyConditionExpression':'chat_id = :c','ConsistentRead':true,"
        "'ExpressionAttributeValues':{':c':{'S':'big'}}}");
    return strstr(answer, "\"Count\":1") != NULL;
}

/* Kills a process as soon as it has stored the first members of a large group. */
static void kill_creation(const struct fixture *fixture)
{
    pid_t child = fork();
    int polls = 0;
    if (child == 0)
        create_group_in_child(fixture);
    while (!has_staged_items(fixture) && ++polls < POLLS_MAX)
        usleep(POLL_US);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_true(polls < POLLS_MAX);
}

/* The child of a process with threads may inherit a lock that one of them held, so the ledgers are opened after it. */
static int set_up_after_killed_creation(void **state)
{
    struct fixture *fixture = make_fixture();
    kill_creation(fixture);
    open_ledgers(fixture);
    *state = fixture;
    return 0;
}

static void test_killed_creation_is_continued_by_the_same_request(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harnesses[0];
    expect(harness_chat(h, "big", ""), "not_found");
    expect(harness_member(h, "big", "alice"), "not_found");
    expect(harness_chats(h, "alice", "", 0, 0, false), "ok");
    expect(harness_chats(h, "member-0", "", 0, 0, false), "ok");
    size_t staged =
        dynamodb_test_chats_count(&fixture->server, &h->client, "chats", "big", "member+");
    assert_true(staged > 0 && staged < KILLED_GROUP_MEMBERS);
    assert_int_equal(create_large_group(h, "big", "member", KILLED_GROUP_MEMBERS), LEDGER_OK);
    expect(harness_chats(h, "member-0", "", 0, 0, false), "ok big by alice (4001) 0/0");
    assert_int_equal(
        dynamodb_test_chats_count(&fixture->server, &h->client, "chats", "big", "member+"),
        KILLED_GROUP_MEMBERS + 1);
    assert_int_equal(
        dynamodb_test_chats_count(&fixture->server, &h->client, "users", NULL, "chat+big#"),
        KILLED_GROUP_MEMBERS + 1);
}

static void test_killed_creation_leaves_the_id_free_for_another(void **state)
{
    enum { DAY_MS = 24 * 60 * 60 * 1000 };
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harnesses[0];
    expect(harness_chat_create(h, "big", "bob", "carol"),
           "ok created big by bob (2 bob carol) 0/0");
    expect(harness_member(h, "big", "alice"), "not_found");
    expect(harness_chats(h, "alice", "", 0, 0, false), "ok");
    assert_int_equal(create_large_group(h, "big", "member", KILLED_GROUP_MEMBERS), LEDGER_CONFLICT);
    check_tables(fixture);
    size_t left =
        dynamodb_test_chats_count(&fixture->server, &h->client, "users", NULL, "chat+big#");
    assert_true(left > 0);
    h->clock.wall_ms += DAY_MS; /* whoever lists the chats removes what is old */
    for (int i = 0; i < KILLED_GROUP_MEMBERS; i += KILLED_GROUP_MEMBERS / 10) {
        char member[TEXT_MAX];
        snprintf(member, sizeof(member), "member-%d", i);
        size_t had =
            dynamodb_test_chats_count(&fixture->server, &h->client, "users", member, "chat+");
        expect(harness_chats(h, member, "", 0, 0, false), "ok");
        assert_int_equal(
            dynamodb_test_chats_count(&fixture->server, &h->client, "users", member, "chat+"), 0);
        left -= had;
    }
    assert_int_equal(
        dynamodb_test_chats_count(&fixture->server, &h->client, "users", NULL, "chat+"), left);
    assert_int_equal(
        dynamodb_test_chats_count(&fixture->server, &h->client, "chats", "big", "member+"), left);
}

/* ---- members and roles ---- */

static const char *demote_each_other(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX];
    snprintf(id, sizeof(id), "admins%d", round);
    return harness_admin(harness, id, side ? "alice" : "bob", side ? "bob" : "alice", false);
}

static const char *leave_at_once(struct harness *harness, int side, int round)
{
    char id[TEXT_MAX];
    snprintf(id, sizeof(id), "leave%d", round);
    return harness_member_remove(harness, id, side ? "alice" : "bob", side ? "alice" : "bob");
}

static void make_group_with_two_admins(struct harness *h, const char *name, int round)
{
    char id[TEXT_MAX];
    snprintf(id, sizeof(id), "%s%d", name, round);
    harness_chat_create(h, id, "alice", "bob,carol");
    expect(harness_admin(h, id, "alice", "bob", true), "ok changed");
}

static void test_one_of_two_admins_is_left(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harnesses[0];
    const char *answers[LEDGERS];
    for (int round = 0; round < ROUNDS; round++) {
        make_group_with_two_admins(h, "admins", round);
        race(fixture, demote_each_other, round, answers);
        assert_int_equal(count_starting(answers, "ok changed"), 1);
        assert_int_equal(count_starting(answers, "forbidden"), 1);
        make_group_with_two_admins(h, "leave", round);
        race(fixture, leave_at_once, round, answers);
        assert_int_equal(count_starting(answers, "ok changed"), 2);
        assert_int_equal(count_starting(answers, "ok changed admin carol"), 1);
    }
    check_tables(fixture);
}

static const char *add_beyond_the_bound(struct harness *harness, int side, int round)
{
    char user[TEXT_MAX];
    snprintf(user, sizeof(user), "user-%d-%d", side, round);
    return harness_member_add(harness, "full", "alice", user);
}

static void test_bound_on_members_holds_for_two(void **state)
{
    struct fixture *fixture = *state;
    const char *answers[LEDGERS];
    harness_chat_create(&fixture->harnesses[0], "full", "alice", "bob");
    dynamodb_test_server_call(&fixture->server, "UpdateItem",
                              "{'TableName':'@chats','Key':{'chat_id':{'S':'full'},'part_key':{'S':"
                              "'chat'}},'UpdateExpression':'SET member_count = :n',"
                              "'ExpressionAttributeValues':{':n':{'N':'%d'}}}",
                              LEDGER_CHAT_MEMBERS_MAX - 1);
    race(fixture, add_beyond_the_bound, 0, answers);
    assert_int_equal(count_starting(answers, "ok changed"), 1);
    assert_int_equal(count_starting(answers, "limit"), 1);
}

enum { STEPS = 60, USERS = 5 };

/* Returns, in the harness's line, how many steps changed the members. */
static const char *change_members_at_random(struct harness *harness, int side, int round)
{
    static const char *const NAMES[USERS] = {"alice", "bob", "carol", "dave", "erin"};
    unsigned random = (unsigned)(2 * round + side + 1), changes = 0;
    for (int i = 0; i < STEPS; i++) {
        random = random * 1103515245 + 12345;
        const char *actor = NAMES[(random >> 16) % USERS], *user = NAMES[(random >> 20) % USERS];
        unsigned kind = (random >> 24) % 4;
        const char *answer = kind == 0   ? harness_member_remove(harness, "c", actor, user)
                             : kind == 1 ? harness_admin(harness, "c", actor, user, true)
                             : kind == 2 ? harness_admin(harness, "c", actor, user, false)
                                         : harness_member_add(harness, "c", actor, user);
        if (starts_with(answer, "unavailable") || starts_with(answer, "timeout"))
            return answer;
        changes += (kind == 0 || kind == 3) && starts_with(answer, "ok changed");
    }
    buffer_clear(&harness->line);
    buffer_printf(&harness->line, "%u", changes);
    buffer_append_byte(&harness->line, '\0');
    return harness->line.data;
}

static void on_version_read(void *arg, const struct ledger_chat_outcome *outcome)
{
    *(uint64_t *)arg = outcome->chat.members_version;
}

static void test_members_and_roles_agree_with_the_counts(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harnesses[0];
    const char *answers[LEDGERS];
    uint64_t version = 0;
    harness_chat_create(h, "c", "alice", "bob,carol,dave,erin");
    race(fixture, change_members_at_random, 1, answers);
    unsigned long changes = strtoul(answers[0], NULL, 10) + strtoul(answers[1], NULL, 10);
    assert_true(changes > 0);
    ledger_chat_get(&h->client, SLICE("c"), SLICE_NONE, false, on_version_read, &version);
    harness_settle(h);
    assert_int_equal(version, 1 + changes);
    check_tables(fixture);
}

/* ---- cursors ---- */

static const char *move_many_cursors(struct harness *harness, int side, int round)
{
    const char *answer = "";
    (void)round;
    for (int i = 0; i < LEDGER_CURSORS_MAX; i++) {
        char device[TEXT_MAX];
        snprintf(device, sizeof(device), "device-%d-%d", i % 40, side);
        answer = harness_cursor(harness, "c", "bob", device, (uint64_t)i / 20 + 1);
        if (!starts_with(answer, "ok"))
            break;
    }
    return answer;
}

static const char *leave_or_move_cursor(struct harness *harness, int side, int round)
{
    char device[TEXT_MAX];
    snprintf(device, sizeof(device), "late-%d", round);
    return side ? harness_member_remove(harness, "c", "bob", "bob")
                : harness_cursor(harness, "c", "bob", device, 4);
}

static void test_cursors_are_bounded_and_leave_with_the_member(void **state)
{
    struct fixture *fixture = *state;
    struct harness *h = &fixture->harnesses[0];
    const char *answers[LEDGERS];
    harness_chat_create(h, "c", "alice", "bob");
    for (char id[2] = "1"; id[0] <= '4'; id[0]++)
        harness_send(h, "c", id[0] % 2 ? "alice" : "bob", id, id);
    race(fixture, move_many_cursors, 0, answers);
    for (int side = 0; side < LEDGERS; side++)
        if (!starts_with(answers[side], "ok changed"))
            fail_msg("%s", answers[side]);
    check_tables(fixture);
    assert_int_equal(
        dynamodb_test_chats_count(&fixture->server, &h->client, "chats", "c", "cursor#"),
        LEDGER_CURSORS_MAX);
    expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 0/4");
    for (int round = 0; round < ROUNDS; round++) {
        race(fixture, leave_or_move_cursor, round, answers);
        expect(answers[1], "ok changed");
        assert_true(starts_with(answers[0], "ok") || starts_with(answers[0], "not_found"));
        assert_int_equal(
            dynamodb_test_chats_count(&fixture->server, &h->client, "chats", "c", "cursor#"), 0);
        check_tables(fixture);
        expect(harness_member_add(h, "c", "alice", "bob"), "ok changed");
        expect(harness_chat(h, "c", "bob"), "ok c by alice (2 alice bob) 2/4");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_group_is_created_by_one_of_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_users_who_open_at_once_get_one_direct_chat, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_drafts_of_one_group_do_not_mix, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_creation_is_continued_by_the_same_request,
                                        set_up_after_killed_creation, tear_down),
        cmocka_unit_test_setup_teardown(test_killed_creation_leaves_the_id_free_for_another,
                                        set_up_after_killed_creation, tear_down),
        cmocka_unit_test_setup_teardown(test_one_of_two_admins_is_left, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bound_on_members_holds_for_two, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_members_and_roles_agree_with_the_counts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_cursors_are_bounded_and_leave_with_the_member, set_up,
                                        tear_down),
    };
    if (!dynamodb_test_server_init())
        return 1;
    if (getenv("ROLLCALL_TEST"))
        cmocka_set_test_filter(getenv("ROLLCALL_TEST"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
