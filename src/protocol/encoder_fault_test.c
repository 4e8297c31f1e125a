/*
 * The encoder when out of memory: it returns a whole blob or none, leaks nothing, and works again as soon as
 * there is memory.
 */
#include "protocol/encoder.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct dialect *const native = &DIALECT_TABLE_NATIVE;

/* Large enough to grow the scratch several times. */
static struct presence presences[64];
static const struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT,
                                        .snapshot = {presences, 64}};

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < 64; i++)
        presences[i] = presence_hidden(SLICE("somebody"), PRESENCE_REASON_PRIVACY);
    return 0;
}

struct trial {
    struct encoder encoder;
    struct broadcast broadcast;
};

/* Fails each allocation once: nothing is made, and the next try makes it. The caller owns what `make`
 * returns, and `check` checks it. */
static void expect_all_or_nothing(struct blob *(*make)(struct trial *trial),
                                  void (*check)(struct blob *blob))
{
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct trial trial = {.broadcast = {.message = &snapshot}};
        encoder_init(&trial.encoder);
        alloc_fault_after(n);
        struct blob *first = make(&trial);
        failed = alloc_fault_off();
        assert_int_equal(first == NULL, failed > 0);
        if (first)
            check(first);
        struct blob *second = make(&trial);
        assert_non_null(second);
        check(second);
        blob_drop(&first);
        blob_drop(&second);
        broadcast_end(&trial.broadcast);
        encoder_free(&trial.encoder);
        assert_true(n < 100);
    }
}

static void expect_whole(struct blob *blob)
{
    struct buffer expected = BUFFER_INIT;
    native->encode(&snapshot, &expected);
    assert_true(slice_equal(blob_payload(blob), buffer_slice(&expected)));
    buffer_free(&expected);
}

static struct blob *make_snapshot(struct trial *trial)
{
    return encoder_encode(&trial->encoder, native, &snapshot);
}

static void encoding_returns_a_whole_blob_or_none(void **state)
{
    (void)state;
    expect_all_or_nothing(make_snapshot, expect_whole);
}

static void expect_ack(struct blob *blob)
{
    assert_true(blob_payload(blob).len > 0);
}

static struct blob *make_ack(struct trial *trial)
{
    return encoder_heartbeat_ack(&trial->encoder, native, 7);
}

static void failed_heartbeat_ack_is_made_by_the_next_try(void **state)
{
    (void)state;
    expect_all_or_nothing(make_ack, expect_ack);
}

static struct blob *make_broadcast(struct trial *trial)
{
    struct blob *blob = broadcast_blob(&trial->broadcast, &trial->encoder, native);
    return blob ? blob_share(blob) : NULL;
}

static void failed_broadcast_is_made_by_the_next_try(void **state)
{
    (void)state;
    expect_all_or_nothing(make_broadcast, expect_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_returns_a_whole_blob_or_none),
        cmocka_unit_test(failed_heartbeat_ack_is_made_by_the_next_try),
        cmocka_unit_test(failed_broadcast_is_made_by_the_next_try),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
