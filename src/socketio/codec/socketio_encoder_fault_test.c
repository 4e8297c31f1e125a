/* Packing a broadcast without memory: no blob rather than half of one, no leak, and success at the next try. */
#include "protocol/encoder.h"
#include "socketio/codec/socketio_dialect.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Large enough to grow the scratch several times. */
enum { PRESENCES = 64 };

static struct presence presences[PRESENCES];
static const struct message snapshot = {.type = MESSAGE_PRESENCE_SNAPSHOT,
                                        .snapshot = {presences, PRESENCES}};

static int set_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < PRESENCES; i++)
        presences[i] = presence_hidden(SLICE("somebody"), PRESENCE_REASON_PRIVACY);
    return 0;
}

/* Each presence has a name of 8 bytes. */
static void expect_all_presences(const struct blob *blob)
{
    size_t found = 0;
    for (size_t at = 0; at + 9 <= blob->len; at++)
        found += memcmp(blob->bytes + at, "\xa8somebody", 9) == 0;
    assert_int_equal(found, PRESENCES);
}

static void a_packed_broadcast_is_made_whole_or_not_at_all(void **state)
{
    (void)state;
    size_t failed = 1;
    for (size_t n = 1; failed > 0; n++) {
        struct encoder encoder;
        struct broadcast broadcast = {.message = &snapshot};
        encoder_init(&encoder);
        alloc_fault_after(n);
        struct blob *first = broadcast_blob(&broadcast, &encoder, &DIALECT_TABLE_SOCKETIO_PACKED);
        failed = alloc_fault_off();
        assert_int_equal(first == NULL, failed > 0);
        if (first)
            expect_all_presences(first);
        struct blob *second = broadcast_blob(&broadcast, &encoder, &DIALECT_TABLE_SOCKETIO_PACKED);
        assert_non_null(second);
        expect_all_presences(second);
        broadcast_end(&broadcast);
        encoder_free(&encoder);
        assert_true(n < 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packed_broadcast_is_made_whole_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
