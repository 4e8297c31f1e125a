/* An admission takes its steps in order, opens a lease before the session, and closes it if no session opens. */
#include "session/admission.h"

#include "support/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct world world;
static char token[WORLD_TOKEN_BYTES_MAX];

/* A client that records the hooks of its admission. */
static struct {
    struct admission admission;
    bool is_gone, is_slow, fails; /* what its hooks return */
    const char *refusal;
    char steps[64]; /* the hooks that ran, by their first letter */
    size_t leases_when_opened;
    unsigned ends;
    enum admission_result result;
    char text[128];
} client;

static void note_step(const char *step)
{
    strncat(client.steps, step, sizeof(client.steps) - strlen(client.steps) - 1);
}

static bool is_present(const struct admission *admission)
{
    assert_ptr_equal(admission, &client.admission);
    return !client.is_gone;
}

static const char *refusal(const struct admission *admission)
{
    (void)admission;
    note_step("r");
    return client.refusal;
}

static void prepare(struct admission *admission)
{
    note_step("p");
    if (!client.is_slow)
        admission_resume(admission);
}

static bool open_session(struct admission *admission)
{
    (void)admission;
    note_step("o");
    client.leases_when_opened = world_leases(&world, "alice", NULL);
    return !client.fails;
}

static void on_end(struct admission *admission, enum admission_result result, const char *text)
{
    (void)admission;
    note_step("e");
    client.ends++;
    client.result = result;
    snprintf(client.text, sizeof(client.text), "%s", text ? text : "");
}

static const struct admission_hooks HOOKS = {.is_present = is_present,
                                             .refusal = refusal,
                                             .prepare = prepare,
                                             .open_session = open_session,
                                             .on_end = on_end};

static int set_up(void **state)
{
    (void)state;
    memset(&client, 0, sizeof(client));
    world_open(&world, WORLD_DEFAULTS);
    world_token(&world, "alice", "", 3600000, token);
    return 0;
}

/* The admitted client has no session here, so the test closes its lease. */
static int tear_down(void **state)
{
    (void)state;
    presence_close(world.presence, SLICE("alice"), &client.admission.conn_id);
    world_settle(&world);
    world_close(&world);
    return 0;
}

static void begin(const char *with_token)
{
    assert_true(admission_begin(&client.admission, world.sessions, &HOOKS, slice_of(with_token),
                                SLICE("phone")));
    assert_int_equal(client.ends, 0); /* never before it returns */
}

static void expect_end(enum admission_result result, const char *steps, size_t leases)
{
    assert_int_equal(client.ends, 1);
    assert_int_equal(client.result, result);
    assert_string_equal(client.steps, steps);
    assert_int_equal(world_leases(&world, "alice", NULL), leases);
}

static void tokens_wait_while_many_leases_are_being_opened(void **state)
{
    (void)state;
    for (size_t i = 0; i < SESSION_LEASES_OPENING_MAX; i++)
        session_context_note_opening(world.sessions);
    begin(token);
    world_settle(&world);
    assert_int_equal(client.ends, 0);
    session_context_note_opened(world.sessions);
    world_settle(&world);
    expect_end(ADMISSION_ADMITTED, "rpoe", 1);
    assert_int_equal(world.sessions->leases_opening, SESSION_LEASES_OPENING_MAX - 1);
}

static void a_good_token_opens_a_lease_then_the_session(void **state)
{
    (void)state;
    begin(token);
    world_settle(&world);
    expect_end(ADMISSION_ADMITTED, "rpoe", 1);
    assert_int_equal(client.leases_when_opened, 1);
    assert_true(slice_is(identity_user(&client.admission.identity), "alice"));
    assert_true(slice_is(admission_device(&client.admission), "phone"));
}

static void a_client_without_a_device_gets_the_connection_id_as_one(void **state)
{
    (void)state;
    char expected[ULID_TEXT_LEN];
    assert_true(
        admission_begin(&client.admission, world.sessions, &HOOKS, slice_of(token), SLICE_NONE));
    ulid_write(expected, &client.admission.conn_id);
    assert_true(slice_equal(admission_device(&client.admission),
                            (struct slice){expected, sizeof(expected)}));
    world_settle(&world);
    expect_end(ADMISSION_ADMITTED, "rpoe", 1);
}

static void a_bad_token_is_refused_and_counted(void **state)
{
    (void)state;
    begin("no.token.atall");
    world_settle(&world);
    expect_end(ADMISSION_TOKEN_REFUSED, "e", 0);
    assert_true(strlen(client.text) > 0);
    assert_int_equal(world_metric(&world, METRIC_AUTH_FAILURES), 1);
}

static void a_client_that_left_before_the_check_gets_no_lease(void **state)
{
    (void)state;
    begin(token);
    client.is_gone = true;
    world_settle(&world);
    expect_end(ADMISSION_CLIENT_GONE, "e", 0);
}

static void the_transport_may_refuse_after_the_gateway(void **state)
{
    (void)state;
    client.refusal = "no thanks";
    begin(token);
    world_settle(&world);
    expect_end(ADMISSION_UNAVAILABLE, "re", 0);
    assert_string_equal(client.text, "no thanks");
}

static void a_draining_gateway_refuses_without_asking_the_transport(void **state)
{
    (void)state;
    begin(token);
    world.sessions->draining = true;
    world_settle(&world);
    world.sessions->draining = false;
    expect_end(ADMISSION_UNAVAILABLE, "e", 0);
    assert_string_equal(client.text, "this gateway is draining");
}

static void a_session_that_cannot_be_made_closes_the_lease(void **state)
{
    (void)state;
    client.fails = true;
    begin(token);
    world_settle(&world);
    expect_end(ADMISSION_NOT_REGISTERED, "rpoe", 0);
    assert_int_equal(client.leases_when_opened, 1);
}

static void a_client_that_leaves_while_it_is_prepared_closes_the_lease(void **state)
{
    (void)state;
    client.is_slow = true;
    begin(token);
    world_settle(&world);
    assert_int_equal(client.ends, 0);
    assert_int_equal(world_leases(&world, "alice", NULL), 1);
    client.is_gone = true;
    admission_resume(&client.admission);
    world_settle(&world);
    expect_end(ADMISSION_NOT_REGISTERED, "rpe", 0);
}

static void a_drain_that_begins_while_it_is_prepared_closes_the_lease(void **state)
{
    (void)state;
    client.is_slow = true;
    begin(token);
    world_settle(&world);
    world.sessions->draining = true;
    admission_resume(&client.admission);
    world.sessions->draining = false;
    world_settle(&world);
    expect_end(ADMISSION_NOT_REGISTERED, "rpe", 0);
}

static void refuse_lease(struct state_store *store, const struct lease *lease,
                         state_transition_done done, void *arg)
{
    (void)store;
    (void)lease;
    done(arg, STATE_UNAVAILABLE, NULL);
}

static void a_lease_that_the_store_refuses_ends_the_admission(void **state)
{
    (void)state;
    struct state_store *store = world.presence->store;
    const struct state_store_operations *real = store->operations;
    struct state_store_operations refusing = *real;
    refusing.open = refuse_lease;
    store->operations = &refusing;
    begin(token);
    world_settle(&world);
    store->operations = real;
    expect_end(ADMISSION_NOT_REGISTERED, "re", 0);
}

static void a_full_verifier_refuses_at_once_and_ends_nothing(void **state)
{
    (void)state;
    size_t pending_max = world.sessions->verifier->pending_max;
    world.sessions->verifier->pending_max = 0;
    assert_false(admission_begin(&client.admission, world.sessions, &HOOKS, slice_of(token),
                                 SLICE("phone")));
    world.sessions->verifier->pending_max = pending_max;
    world_settle(&world);
    assert_int_equal(client.ends, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_token_opens_a_lease_then_the_session),
        TEST(tokens_wait_while_many_leases_are_being_opened),
        TEST(a_client_without_a_device_gets_the_connection_id_as_one),
        TEST(a_bad_token_is_refused_and_counted),
        TEST(a_client_that_left_before_the_check_gets_no_lease),
        TEST(the_transport_may_refuse_after_the_gateway),
        TEST(a_draining_gateway_refuses_without_asking_the_transport),
        TEST(a_session_that_cannot_be_made_closes_the_lease),
        TEST(a_client_that_leaves_while_it_is_prepared_closes_the_lease),
        TEST(a_drain_that_begins_while_it_is_prepared_closes_the_lease),
        TEST(a_lease_that_the_store_refuses_ends_the_admission),
        TEST(a_full_verifier_refuses_at_once_and_ends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
