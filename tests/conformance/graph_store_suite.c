#include "conformance/graph_store_suite.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
    IDS_MAX = 5000,
    ID_ROOM = 24,
    MODEL_USERS = 12,
    MODEL_STEPS = 20000,
    PATIENCE_POLLS = 100000,
};

static const struct slice ALICE = {"alice", 5};

/* ---- a world: users by number, and what the last audience said ---- */

struct world {
    const struct graph_store_suite_backend *backend;
    bool answered;
    bool known;
    uint64_t ticket;
    uint8_t presence_visibility;
    uint8_t last_seen_visibility;
    char contacts[IDS_MAX][ID_ROOM];
    size_t contact_count;
    char blocked[IDS_MAX][ID_ROOM];
    size_t blocked_count;
    char chats[IDS_MAX][ID_ROOM];
    size_t chat_count;
    int64_t version; /* of the last transition, */
    bool online;     /* and what it made of its user */
};

/* Ids that name users and lists of them. */
struct ids {
    char texts[IDS_MAX][ID_ROOM];
    struct slice slices[IDS_MAX];
};

static struct id_list numbered(struct ids *ids, const char *prefix, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(ids->texts[i], ID_ROOM, "%s-%05zu", prefix, first + i);
        ids->slices[i] = (struct slice){ids->texts[i], (size_t)len};
    }
    return (struct id_list){ids->slices, count};
}

static void wait_for(struct world *world)
{
    for (int i = 0; !world->answered && world->backend->poll && i < PATIENCE_POLLS; i++)
        world->backend->poll(world->backend->context);
    assert_true(world->answered);
}

static void copy(const struct id_list *list, char texts[][ID_ROOM], size_t *count)
{
    *count = list->count;
    for (size_t i = 0; i < list->count; i++)
        snprintf(texts[i], ID_ROOM, "%.*s", SLICE_FORMAT(list->ids[i]));
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void heard(void *arg, enum state_status status, const struct graph_lookup *audience)
{
    struct world *world = arg;
    assert_int_equal(status, STATE_OK);
    assert_false(world->answered);
    world->answered = true;
    world->known = audience->known;
    world->ticket = audience->ticket;
    if (!audience->known)
        return;
    world->presence_visibility = audience->graph.presence_visibility;
    world->last_seen_visibility = audience->graph.last_seen_visibility;
    copy(&audience->graph.contacts, world->contacts, &world->contact_count);
    qsort(world->contacts, world->contact_count, ID_ROOM, compare_texts);
    copy(&audience->graph.blocked, world->blocked, &world->blocked_count);
    copy(&audience->graph.chats, world->chats, &world->chat_count);
}

static struct graph_store *port(const struct world *world, size_t index)
{
    return world->backend->port(world->backend->context, index);
}

static bool ask(struct world *world, size_t index, struct slice user)
{
    world->answered = false;
    graph_lookup(port(world, index), user, heard, world);
    wait_for(world);
    return world->known;
}

/* A miss first, for its ticket. */
static void put(struct world *world, struct slice user, const struct social_graph *graph)
{
    assert_false(ask(world, 0, user));
    graph_put(port(world, 0), user, world->ticket, graph);
}

static void moved(void *arg, enum state_status status, const struct state_transition *transition)
{
    struct world *world = arg;
    assert_int_equal(status, STATE_OK);
    world->answered = true;
    world->version = transition->presence.version;
    world->online = transition->presence.status != PRESENCE_OFFLINE;
}

static void wait_for_move(struct world *world, struct slice user)
{
    wait_for(world);
    graph_set_online(port(world, 1), user, world->online, world->version);
}

static struct ulid connection_of(struct slice user)
{
    struct ulid id = {0};
    memcpy(id.bytes, user.data, user.len < sizeof(id.bytes) ? user.len : sizeof(id.bytes));
    return id;
}

static void come(struct world *world, struct slice user)
{
    struct lease lease = {
        .conn_id = connection_of(user), .user_id = user, .gateway_id = SLICE("g")};
    world->answered = false;
    state_open(world->backend->state(world->backend->context), &lease, moved, world);
    wait_for_move(world, user);
}

static void leave(struct world *world, struct slice user)
{
    struct ulid conn_id = connection_of(user);
    world->answered = false;
    state_close(world->backend->state(world->backend->context), user, &conn_id, moved, world);
    wait_for_move(world, user);
}

/* Names in the order of the alphabet. */
static void expect_contacts(struct world *world, size_t index, struct slice user, size_t count, ...)
{
    va_list names;
    assert_true(ask(world, index, user));
    assert_int_equal(world->contact_count, count);
    va_start(names, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(world->contacts[i], va_arg(names, const char *));
    va_end(names);
}

/* ---- tests ---- */

static void an_unknown_user_is_a_miss(void **state)
{
    struct world *world = *state;
    assert_false(ask(world, 0, ALICE));
    come(world, ALICE);
    assert_false(ask(world, 1, ALICE));
}

static void a_graph_comes_back_as_it_was_put(void **state)
{
    struct world *world = *state;
    struct slice blocked[] = {SLICE("eve"), SLICE("mallory")};
    struct slice chats[] = {SLICE("c1"), SLICE("c2"), SLICE("c3")};
    put(world, ALICE,
        &(struct social_graph){.presence_visibility = 2,
                               .last_seen_visibility = 1,
                               .blocked = {blocked, 2},
                               .chats = {chats, 3}});
    for (size_t i = 0; i < GRAPH_STORE_SUITE_PORTS; i++) {
        assert_true(ask(world, i, ALICE));
        assert_int_equal(world->presence_visibility, 2);
        assert_int_equal(world->last_seen_visibility, 1);
        assert_int_equal(world->contact_count, 0);
        assert_int_equal(world->blocked_count, 2);
        assert_string_equal(world->blocked[1], "mallory");
        assert_int_equal(world->chat_count, 3);
        assert_string_equal(world->chats[0], "c1");
    }
}

static void only_contacts_online_are_named(void **state)
{
    struct world *world = *state;
    struct slice contacts[] = {SLICE("bob"), SLICE("carol"), SLICE("dave")};
    come(world, SLICE("carol")); /* before the graph is known */
    put(world, ALICE, &(struct social_graph){.contacts = {contacts, 3}});
    expect_contacts(world, 0, ALICE, 1, "carol");
    come(world, SLICE("bob")); /* and after */
    expect_contacts(world, 1, ALICE, 2, "bob", "carol");
    come(world, SLICE("stranger"));
    expect_contacts(world, 0, ALICE, 2, "bob", "carol");
    leave(world, SLICE("carol"));
    expect_contacts(world, 0, ALICE, 1, "bob");
    leave(world, SLICE("bob"));
    expect_contacts(world, 0, ALICE, 0);
}

static void a_drop_is_a_miss_and_voids_tickets(void **state)
{
    struct world *world = *state;
    struct slice old[] = {SLICE("bob")};
    struct slice new[] = {SLICE("carol")};
    come(world, SLICE("bob"));
    come(world, SLICE("carol"));
    assert_false(ask(world, 0, ALICE));
    uint64_t ticket = world->ticket;
    graph_drop(port(world, 1), ALICE);
    graph_put(port(world, 0), ALICE, ticket, &(struct social_graph){.contacts = {old, 1}});
    put(world, ALICE, &(struct social_graph){.contacts = {new, 1}});
    expect_contacts(world, 1, ALICE, 1, "carol");
    graph_drop(port(world, 0), ALICE);
    assert_false(ask(world, 1, ALICE));
}

static void a_drop_leaves_others_alone(void **state)
{
    struct world *world = *state;
    struct slice contacts[] = {SLICE("carol"), ALICE};
    come(world, SLICE("carol"));
    put(world, ALICE, &(struct social_graph){.contacts = {contacts, 1}});
    put(world, SLICE("bob"), &(struct social_graph){.contacts = {contacts, 2}});
    graph_drop(port(world, 0), ALICE);
    expect_contacts(world, 0, SLICE("bob"), 1, "carol");
    come(world, ALICE);
    expect_contacts(world, 0, SLICE("bob"), 2, "alice", "carol");
}

static void an_older_change_undoes_nothing(void **state)
{
    struct world *world = *state;
    struct slice contacts[] = {SLICE("bob")};
    put(world, ALICE, &(struct social_graph){.contacts = {contacts, 1}});
    come(world, contacts[0]);
    int64_t came = world->version;
    leave(world, contacts[0]);
    graph_set_online(port(world, 0), contacts[0], true, came);
    expect_contacts(world, 0, ALICE, 0);
    come(world, contacts[0]);
    graph_set_online(port(world, 1), contacts[0], false, came + 1);
    expect_contacts(world, 0, ALICE, 1, "bob");
}

static void graphs_last_a_day_after_their_users_left(void **state)
{
    struct world *world = *state;
    if (!world->backend->pass)
        skip();
    void *context = world->backend->context;
    come(world, ALICE);
    put(world, ALICE, &(struct social_graph){.presence_visibility = 1});
    world->backend->pass(context, 3LL * GRAPH_OFFLINE_TTL_MS);
    assert_true(ask(world, 0, ALICE));
    leave(world, ALICE);
    world->backend->pass(context, GRAPH_OFFLINE_TTL_MS - 1);
    assert_true(ask(world, 0, ALICE));
    world->backend->pass(context, 1);
    assert_false(ask(world, 0, ALICE));
}

static void ids_are_bytes(void **state)
{
    struct world *world = *state;
    char bytes[USER_ID_BYTES_MAX];
    memset(bytes, 'x', sizeof(bytes));
    memcpy(bytes, "a{b}:\xc3\xa4 ", 8);
    struct slice contacts[] = {{bytes, sizeof(bytes)}, {bytes, sizeof(bytes) - 1}};
    come(world, contacts[1]);
    put(world, contacts[0], &(struct social_graph){.contacts = {&contacts[1], 1}});
    assert_true(ask(world, 1, contacts[0]));
    assert_int_equal(world->contact_count, 1);
    assert_false(ask(world, 1, contacts[1]));
}

static void five_thousand_contacts(void **state)
{
    struct world *world = *state;
    struct ids *ids = malloc(sizeof(*ids));
    assert_non_null(ids);
    struct id_list contacts = numbered(ids, "friend", 0, IDS_MAX);
    for (size_t i = 0; i < contacts.count; i += 50)
        come(world, contacts.ids[i]);
    put(world, ALICE, &(struct social_graph){.contacts = contacts});
    assert_true(ask(world, 0, ALICE));
    assert_int_equal(world->contact_count, IDS_MAX / 50);
    for (size_t i = 0; i < world->contact_count; i++)
        assert_string_equal(world->contacts[i], ids->texts[i * 50]);
    for (size_t i = 0; i < contacts.count; i += 50)
        leave(world, contacts.ids[i]);
    assert_true(ask(world, 0, ALICE));
    assert_int_equal(world->contact_count, 0);
    free(ids);
}

/* ---- against a model ---- */

struct model {
    bool known[MODEL_USERS];
    bool contacts[MODEL_USERS][MODEL_USERS];
    bool online[MODEL_USERS];
};

static void model_put(struct world *world, struct model *model, const struct ids *ids, size_t user,
                      struct random *random)
{
    struct slice contacts[MODEL_USERS];
    size_t count = 0;
    for (size_t i = 0; i < MODEL_USERS; i++) {
        model->contacts[user][i] = i != user && random_below(random, 2);
        if (model->contacts[user][i])
            contacts[count++] = ids->slices[i];
    }
    put(world, ids->slices[user], &(struct social_graph){.contacts = {contacts, count}});
    model->known[user] = true;
}

static void model_expect(struct world *world, const struct model *model, const struct ids *ids,
                         size_t user, size_t index)
{
    assert_int_equal(ask(world, index, ids->slices[user]), model->known[user]);
    size_t at = 0;
    for (size_t i = 0; model->known[user] && i < MODEL_USERS; i++)
        if (model->contacts[user][i] && model->online[i]) {
            assert_true(at < world->contact_count);
            assert_string_equal(world->contacts[at++], ids->texts[i]);
        }
    if (model->known[user])
        assert_int_equal(at, world->contact_count);
}

static void operations_follow_a_model(void **state)
{
    struct world *world = *state;
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
                model_put(world, &model, ids, user, &random);
            break;
        case 1:
            graph_drop(port(world, random_below(&random, 2)), ids->slices[user]);
            model.known[user] = false;
            break;
        case 2:
            model.online[user] = !model.online[user];
            (model.online[user] ? come : leave)(world, ids->slices[user]);
            break;
        default:
            model_expect(world, &model, ids, user, random_below(&random, 2));
        }
    }
    free(ids);
}

/* ---- running ---- */

static int set_up(void **state)
{
    const struct graph_store_suite_backend *backend = *state;
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->backend = backend;
    backend->start(backend->context);
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    world->backend->stop(world->backend->context);
    free(world);
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
        TEST(an_unknown_user_is_a_miss),
        TEST(a_graph_comes_back_as_it_was_put),
        TEST(only_contacts_online_are_named),
        TEST(a_drop_is_a_miss_and_voids_tickets),
        TEST(a_drop_leaves_others_alone),
        TEST(an_older_change_undoes_nothing),
        TEST(graphs_last_a_day_after_their_users_left),
        TEST(ids_are_bytes),
        TEST(five_thousand_contacts),
        TEST(operations_follow_a_model),
    };
#undef TEST
    print_message("graph store suite on %s\n", backend->name);
    return cmocka_run_group_tests_name("graph_store_suite", tests, NULL, NULL);
}
