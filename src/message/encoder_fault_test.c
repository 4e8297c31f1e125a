/*
 * The encoder without memory: no blob rather than half of one, nothing leaks, and it works again as
 * soon as there is memory.
 */
#include "message/encoder.h"

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

static void expect_whole(struct blob *blob)
{
    struct buffer expected = BUFFER_INIT;
    native->encode(&snapshot, &expected);
    assert_true(slice_equal(blob_payload(blob), buffer_slice(&expected)));
    buffer_free(&expected);
}

static void encoding_gives_all_or_nothing(void **state)
{
    (void)state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct encoder encoder;
        encoder_init(&encoder);
        alloc_fault_after(n);
        struct blob *blob = encoder_encode(&encoder, native, &snapshot);
        failed = alloc_fault_off();
        assert_int_equal(blob == NULL, failed > 0);
        if (blob)
            expect_whole(blob);
        blob_drop(&blob);
        blob = encoder_encode(&encoder, native, &snapshot);
        assert_non_null(blob);
        expect_whole(blob);
        blob_drop(&blob);
        encoder_free(&encoder);
        assert_true(n < 100);
    }
}

static void an_ack_that_failed_is_made_by_the_next(void **state)
{
    (void)state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct encoder encoder;
        encoder_init(&encoder);
        alloc_fault_after(n);
        struct blob *ack = encoder_heartbeat_ack(&encoder, native, 7);
        failed = alloc_fault_off();
        assert_int_equal(ack == NULL, failed > 0);
        struct blob *again = encoder_heartbeat_ack(&encoder, native, 7);
        assert_non_null(again);
        blob_drop(&ack);
        blob_drop(&again);
        encoder_free(&encoder);
        assert_true(n < 100);
    }
}

static void so_is_a_broadcast(void **state)
{
    (void)state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct encoder encoder;
        struct broadcast broadcast = {.message = &snapshot};
        encoder_init(&encoder);
        alloc_fault_after(n);
        struct blob *blob = broadcast_blob(&broadcast, &encoder, native);
        failed = alloc_fault_off();
        assert_int_equal(blob == NULL, failed > 0);
        blob = broadcast_blob(&broadcast, &encoder, native);
        assert_non_null(blob);
        expect_whole(blob);
        broadcast_end(&broadcast);
        encoder_free(&encoder);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_gives_all_or_nothing),
        cmocka_unit_test(an_ack_that_failed_is_made_by_the_next),
        cmocka_unit_test(so_is_a_broadcast),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
