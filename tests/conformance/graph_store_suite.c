#include "conformance/graph_store_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    IDS_MAX = 5000,
    ID_BYTES_MAX = 24,
    MODEL_USERS = 12,
    MODEL_STEPS = 20000,
    PATIENCE_POLLS = 100000,
};

static const struct slice ALICE = {"alice", 5};

/* ---- operations, each waits for its answer ---- */

/* The last answers of both stores. */
struct fixture {
    const struct graph_store_suite_backend *backend;
    bool answered;
    bool known;
    uint64_t ticket;
    uint8_t presence_visibility;
    uint8_t last_seen_visibility;
    char contacts[IDS_MAX][ID_BYTES_MAX];
    size_t contact_count;
    char blocked[IDS_MAX][ID_BYTES_MAX];
    size_t blocked_count;
    char blocked_by[IDS_MAX][ID_BYTES_MAX];
    size_t blocked_by_count;
    char chats[IDS_MAX][ID_BYTES_MAX];
    size_t chat_count;
    int64_t version; /* of the last transition */
    bool online;     /* the user after it */
};

/* The memory of a list of numbered ids. */
struct ids {
    char texts[IDS_MAX][ID_BYTES_MAX];
    struct slice slices[IDS_MAX];
};

static struct id_list numbered(struct ids *ids, const char *prefix, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(ids->texts[i], ID_BYTES_MAX, "%s-%05zu", prefix, first + i);
        ids->slices[i] = (struct slice){ids->texts[i], (size_t)len};
    }
    return (struct id_list){ids->slices, count};
}

static void await_answer(struct fixture *fixture)
{
    for (int i = 0; !fixture->answered && fixture->backend->poll && i < PATIENCE_POLLS; i++)
        fixture->backend->poll(fixture->backend->context);
    assert_true(fixture->answered);
}

static void copy_ids(const struct id_list *list, char texts[][ID_BYTES_MAX], size_t *count)
{
    *count = list->count;
    for (size_t i = 0; i < list->count; i++)
        snprintf(texts[i], ID_BYTES_MAX, "%.*s", SLICE_FORMAT(list->ids[i]));
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void on_graph_looked_up(void *arg, enum state_status status,
                               const struct graph_lookup *lookup)
{
    struct fixture *fixture = arg;
    assert_int_equal(status, STATE_OK);
    assert_false(fixture->answered);
    fixture->answered = true;
    fixture->known = lookup->known;
    fixture->ticket = lookup->ticket;
    if (!lookup->known)
        return;
    fixture->presence_visibility = lookup->graph.presence_visibility;
    fixture->last_seen_visibility = lookup->graph.last_seen_visibility;
    copy_ids(&lookup->graph.contacts, fixture->contacts, &fixture->contact_count);
    qsort(fixture->contacts, fixture->contact_count, ID_BYTES_MAX, compare_texts);
    copy_ids(&lookup->graph.blocked, fixture->blocked, &fixture->blocked_count);
    copy_ids(&lookup->graph.blocked_by, fixture->blocked_by, &fixture->blocked_by_count);
    copy_ids(&lookup->graph.chats, fixture->chats, &fixture->chat_count);
}

static struct graph_store *port(const struct fixture *fixture, size_t index)
{
    return fixture->backend->port(fixture->backend->context, index);
}

static bool look_up(struct fixture *fixture, size_t index, struct slice user)
{
    fixture->answered = false;
    graph_lookup(port(fixture, index), user, on_graph_looked_up, fixture);
    await_answer(fixture);
    return fixture->known;
}

/* Looks up first, for the ticket of the miss. */
static void put_graph(struct fixture *fixture, struct slice user, const struct social_graph *graph)
{
    assert_false(look_up(fixture, 0, user));
    graph_put(port(fixture, 0), user, fixture->ticket, graph);
}

static void on_transition(void *arg, enum state_status status,
                          const struct state_transition *transition)
{
    struct fixture *fixture = arg;
    assert_int_equal(status, STATE_OK);
    fixture->answered = true;
    fixture->version = transition->presence.version;
    fixture->online = transition->presence.status != PRESENCE_OFFLINE;
}

static void publish_transition(struct fixture *fixture, struct slice user)
{
    await_answer(fixture);
    graph_set_online(port(fixture, 1), user, fixture->online, fixture->version);
}

static struct ulid connection_id_of(struct slice user)
{
    struct ulid id = {0};
    memcpy(id.bytes, user.data, user.len < sizeof(id.bytes) ? user.len : sizeof(id.bytes));
    return id;
}

static void open_lease(struct fixture *fixture, struct slice user)
{
    struct lease lease = {
        .conn_id = connection_id_of(user), .user_id = user, .gateway_id = SLICE("g")};
    fixture->answered = false;
    state_open(fixture->backend->state(fixture->backend->context), &lease, on_transition, fixture);
    publish_transition(fixture, user);
}

static void close_lease(struct fixture *fixture, struct slice user)
{
    struct ulid conn_id = connection_id_of(user);
    fixture->answered = false;
    state_close(fixture->backend->state(fixture->backend->context), user, &conn_id, on_transition,
                fixture);
    publish_transition(fixture, user);
}

/* The expected names follow in alphabetical order. */
static void expect_contacts(struct fixture *fixture, size_t index, struct slice user, size_t count,
                            ...)
{
    va_list names;
    assert_true(look_up(fixture, index, user));
    assert_int_equal(fixture->contact_count, count);
    va_start(names, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(fixture->contacts[i], va_arg(names, const char *));
    va_end(names);
}

/* ---- tests ---- */

static void unknown_user_is_a_miss(void **state)
{
    struct fixture *fixture = *state;
    assert_false(look_up(fixture, 0, ALICE));
    open_lease(fixture, ALICE);
    assert_false(look_up(fixture, 1, ALICE));
}

static void lookup_returns_the_graph_as_it_was_put(void **state)
{
    struct fixture *fixture = *state;
    struct slice blocked[] = {SLICE("eve"), SLICE("mallory")};
    struct slice chats[] = {SLICE("c1"), SLICE("c2"), SLICE("c3")};
    put_graph(fixture, ALICE,
              &(struct social_graph){.presence_visibility = 2,
                                     .last_seen_visibility = 1,
                                     .blocked = {blocked, 2},
                                     .blocked_by = {blocked, 1},
                                     .chats = {chats, 3}});
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++) {
        assert_true(look_up(fixture, i, ALICE));
        assert_int_equal(fixture->presence_visibility, 2);
        assert_int_equal(fixture->last_seen_visibility, 1);
        assert_int_equal(fixture->contact_count, 0);
        assert_int_equal(fixture->blocked_count, 2);
        assert_string_equal(fixture->blocked[1], "mallory");
        assert_int_equal(fixture->blocked_by_count, 1);
        assert_string_equal(fixture->blocked_by[0], "eve");
        assert_int_equal(fixture->chat_count, 3);
        assert_string_equal(fixture->chats[0], "c1");
    }
}

static void lookup_returns_only_contacts_who_are_online(void **state)
{
    struct fixture *fixture = *state;
    struct slice contacts[] = {SLICE("bob"), SLICE("carol"), SLICE("dave")};
    open_lease(fixture, SLICE("carol")); /* before the graph is put */
    put_graph(fixture, ALICE, &(struct social_graph){.contacts = {contacts, 3}});
    expect_contacts(fixture, 0, ALICE, 1, "carol");
    open_lease(fixture, SLICE("bob")); /* and after */
    expect_contacts(fixture, 1, ALICE, 2, "bob", "carol");
    open_lease(fixture, SLICE("eve")); /* no contact */
    expect_contacts(fixture, 0, ALICE, 2, "bob", "carol");
    close_lease(fixture, SLICE("carol"));
    expect_contacts(fixture, 0, ALICE, 1, "bob");
    close_lease(fixture, SLICE("bob"));
    expect_contacts(fixture, 0, ALICE, 0);
}

static void drop_makes_a_miss_and_voids_earlier_tickets(void **state)
{
    struct fixture *fixture = *state;
    struct slice old[] = {SLICE("bob")};
    struct slice new[] = {SLICE("carol")};
    open_lease(fixture, SLICE("bob"));
    open_lease(fixture, SLICE("carol"));
    assert_false(look_up(fixture, 0, ALICE));
    uint64_t ticket = fixture->ticket;
    graph_drop(port(fixture, 1), ALICE);
    graph_put(port(fixture, 0), ALICE, ticket, &(struct social_graph){.contacts = {old, 1}});
    put_graph(fixture, ALICE, &(struct social_graph){.contacts = {new, 1}});
    expect_contacts(fixture, 1, ALICE, 1, "carol");
    graph_drop(port(fixture, 0), ALICE);
    assert_false(look_up(fixture, 1, ALICE));
}

static void drop_keeps_graphs_of_other_users(void **state)
{
    struct fixture *fixture = *state;
    struct slice contacts[] = {SLICE("carol"), ALICE};
    open_lease(fixture, SLICE("carol"));
    put_graph(fixture, ALICE, &(struct social_graph){.contacts = {contacts, 1}});
    put_graph(fixture, SLICE("bob"), &(struct social_graph){.contacts = {contacts, 2}});
    graph_drop(port(fixture, 0), ALICE);
    expect_contacts(fixture, 0, SLICE("bob"), 1, "carol");
    open_lease(fixture, ALICE);
    expect_contacts(fixture, 0, SLICE("bob"), 2, "alice", "carol");
}

static void older_version_does_not_undo_a_newer_one(void **state)
{
    struct fixture *fixture = *state;
    struct slice contacts[] = {SLICE("bob")};
    put_graph(fixture, ALICE, &(struct social_graph){.contacts = {contacts, 1}});
    open_lease(fixture, contacts[0]);
    int64_t came = fixture->version;
    close_lease(fixture, contacts[0]);
    graph_set_online(port(fixture, 0), contacts[0], true, came);
    expect_contacts(fixture, 0, ALICE, 0);
    open_lease(fixture, contacts[0]);
    graph_set_online(port(fixture, 1), contacts[0], false, came + 1);
    expect_contacts(fixture, 0, ALICE, 1, "bob");
}

static void graph_is_kept_for_a_day_after_its_user_went_offline(void **state)
{
    struct fixture *fixture = *state;
    if (!fixture->backend->pass)
        skip();
    void *context = fixture->backend->context;
    open_lease(fixture, ALICE);
    put_graph(fixture, ALICE, &(struct social_graph){.presence_visibility = 1});
    fixture->backend->pass(context, 3LL * GRAPH_OFFLINE_TTL_MS);
    assert_true(look_up(fixture, 0, ALICE));
    close_lease(fixture, ALICE);
    fixture->backend->pass(context, GRAPH_OFFLINE_TTL_MS - 1);
    assert_true(look_up(fixture, 0, ALICE));
    fixture->backend->pass(context, 1);
    assert_false(look_up(fixture, 0, ALICE));
}

static void ids_may_have_any_bytes_and_full_length(void **state)
{
    struct fixture *fixture = *state;
    char bytes[USER_ID_BYTES_MAX];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "a{b}:\xc3\xa4 ", 8);
    struct slice contacts[] = {{bytes, sizeof(bytes)}, {bytes, sizeof(bytes) - 1}};
    open_lease(fixture, contacts[1]);
    put_graph(fixture, contacts[0], &(struct social_graph){.contacts = {&contacts[1], 1}});
    assert_true(look_up(fixture, 1, contacts[0]));
    assert_int_equal(fixture->contact_count, 1);
    assert_false(look_up(fixture, 1, contacts[1]));
}

static void lookup_selects_online_contacts_of_five_thousand(void **state)
{
    struct fixture *fixture = *state;
    struct ids *ids = malloc(sizeof(*ids));
    assert_non_null(ids);
    struct id_list contacts = numbered(ids, "friend", 0, IDS_MAX);
    for (size_t i = 0; i < contacts.count; i += 50)
        open_lease(fixture, contacts.ids[i]);
    put_graph(fixture, ALICE, &(struct social_graph){.contacts = contacts});
    assert_true(look_up(fixture, 0, ALICE));
    assert_int_equal(fixture->contact_count, IDS_MAX / 50);
    for (size_t i = 0; i < fixture->contact_count; i++)
        assert_string_equal(fixture->contacts[i], ids->texts[i * 50]);
    for (size_t i = 0; i < contacts.count; i += 50)
        close_lease(fixture, contacts.ids[i]);
    assert_true(look_up(fixture, 0, ALICE));
    assert_int_equal(fixture->contact_count, 0);
    free(ids);
}

/* ---- against a model ---- */

struct model {
    bool known[MODEL_USERS];
    bool contacts[MODEL_USERS][MODEL_USERS];
    bool online[MODEL_USERS];
};

static void put_model_graph(struct fixture *fixture, struct model *model, const struct ids *ids,
                            size_t user, struct random *random)
{
    struct slice contacts[MODEL_USERS];
    size_t count = 0;
    for (size_t i = 0; i < MODEL_USERS; i++) {
        model->contacts[user][i] = i != user && random_below(random, 2);
        if (model->contacts[user][i])
            contacts[count++] = ids->slices[i];
    }
    put_graph(fixture, ids->slices[user], &(struct social_graph){.contacts = {contacts, count}});
    model->known[user] = true;
}

static void expect_model_graph(struct fixture *fixture, const struct model *model,
                               const struct ids *ids, size_t user, size_t index)
{
    assert_int_equal(look_up(fixture, index, ids->slices[user]), model->known[user]);
    size_t at = 0;
    for (size_t i = 0; model->known[user] && i < MODEL_USERS; i++)
        if (model->contacts[user][i] && model->online[i]) {
            assert_true(at < fixture->contact_count);
            assert_string_equal(fixture->contacts[at++], ids->texts[i]);
        }
    if (model->known[user])
        assert_int_equal(at, fixture->contact_count);
}

static void lookups_match_a_model_over_random_steps(void **state)
{
    struct fixture *fixture = *state;
    struct ids *ids = malloc(sizeof(*ids));
    struct model model = {0};
    struct random random;
    assert_non_null(ids);
    numbered(ids, "user", 0, MODEL_USERS);
    random_init_seeded(&random, 7);
    for (int step = 0; step < MODEL_STEPS; step++) {
        size_t user = random_below(&random, MODEL_USERS);
        switch (random_below(&random, 4)) {
        case 0:
            if (!model.known[user])
                put_model_graph(fixture, &model, ids, user, &random);
            break;
        case 1:
            graph_drop(port(fixture, random_below(&random, 2)), ids->slices[user]);
            model.known[user] = false;
            break;
        case 2:
            model.online[user] = !model.online[user];
            (model.online[user] ? open_lease : close_lease)(fixture, ids->slices[user]);
            break;
        default:
            expect_model_graph(fixture, &model, ids, user, random_below(&random, 2));
        }
    }
    free(ids);
}

/* ---- running ---- */

static int set_up(void **state)
{
    const struct graph_store_suite_backend *backend = *state;
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture->backend = backend;
    backend->start(backend->context);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->backend->stop(fixture->backend->context);
    free(fixture);
    return 0;
}

int graph_store_suite_run(const struct graph_store_suite_backend *backend)
{
    void *initial = (void *)(uintptr_t)backend;
#define TEST(name)                                                                                 \
    {                                                                                              \
#name, name, set_up, tear_down, initial                                                    \
    }
    const struct CMUnitTest tests[] = {
        TEST(unknown_user_is_a_miss),
        TEST(lookup_returns_the_graph_as_it_was_put),
        TEST(lookup_returns_only_contacts_who_are_online),
        TEST(drop_makes_a_miss_and_voids_earlier_tickets),
        TEST(drop_keeps_graphs_of_other_users),
        TEST(older_version_does_not_undo_a_newer_one),
        TEST(graph_is_kept_for_a_day_after_its_user_went_offline),
        TEST(ids_may_have_any_bytes_and_full_length),
        TEST(lookup_selects_online_contacts_of_five_thousand),
        TEST(lookups_match_a_model_over_random_steps),
    };
#undef TEST
    print_message("graph store suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("graph_store_suite", tests, NULL, NULL);
}
