/* When out of memory a message is not queued; the queued ones are still sent, in order. */
#include "connection/outbound.h"

#include "support/alloc_fault.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MESSAGES = 40 };

static const struct outbound_limits LIMITS = {.messages_max = 100, .bytes_max = 100000};

static size_t fill(struct outbound *outbound, struct blob *blobs[MESSAGES], bool queued[MESSAGES])
{
    size_t refused = 0;
    for (size_t i = 0; i < MESSAGES; i++) {
        enum outbound_result result =
            outbound_push(outbound, &LIMITS, blob_share(blobs[i]), i + 1, false);
        assert_true(result == OUTBOUND_QUEUED || result == OUTBOUND_NO_MEMORY);
        queued[i] = result == OUTBOUND_QUEUED;
        refused += !queued[i];
    }
    return refused;
}

static void send_all(struct outbound *outbound, struct blob *blobs[MESSAGES],
                     const bool queued[MESSAGES])
{
    for (size_t i = 0; i < MESSAGES; i++) {
        struct iovec piece;
        if (!queued[i])
            continue;
        assert_int_equal(outbound_gather(outbound, &piece, 1, false), 1);
        assert_ptr_equal(piece.iov_base, blobs[i]->bytes);
        outbound_sent(outbound, piece.iov_len);
    }
    assert_int_equal(outbound->count + outbound_bytes(outbound), 0);
}

static void message_is_not_queued_when_out_of_memory(void **state)
{
    (void)state;
    struct blob *blobs[MESSAGES];
    for (size_t i = 0; i < MESSAGES; i++)
        blobs[i] = blob_make(SLICE_NONE, SLICE("text"));
    for (size_t n = 1, failed = 1; failed > 0; n++) {
        struct outbound outbound = {0};
        bool queued[MESSAGES];
        alloc_fault_after(n);
        size_t refused = fill(&outbound, blobs, queued);
        failed = alloc_fault_off();
        assert_int_equal(refused, failed);
        send_all(&outbound, blobs, queued);
        outbound_free(&outbound);
    }
    for (size_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(blobs[i]->refs, 1);
        blob_drop(&blobs[i]);
    }
}

static void single_message_needs_no_memory(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    struct blob *first = blob_make(SLICE_NONE, SLICE("1"));
    struct blob *second = blob_make(SLICE_NONE, SLICE("2"));
    alloc_fault_from(1);
    assert_int_equal(outbound_push(&outbound, &LIMITS, first, 7, false), OUTBOUND_QUEUED);
    assert_int_equal(outbound_push(&outbound, &LIMITS, second, 7, false), OUTBOUND_SUPERSEDED);
    assert_int_equal(alloc_fault_off(), 0);
    outbound_free(&outbound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_is_not_queued_when_out_of_memory),
        cmocka_unit_test(single_message_needs_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
