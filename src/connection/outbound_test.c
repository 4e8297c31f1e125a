#include "connection/outbound.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { PIECES_MAX = 16 };

static const struct outbound_limits LIMITS = {.messages_max = 20, .bytes_max = 1000};

static struct blob *blob_of(const char *text)
{
    return blob_make(SLICE_NONE, slice_of(text));
}

static enum outbound_result push(struct outbound *outbound, const char *text, uint64_t key)
{
    return outbound_push(outbound, &LIMITS, blob_of(text), key, false);
}

/* All queued messages as one text. */
static const char *waiting(struct outbound *outbound)
{
    static char text[4096];
    struct iovec pieces[64];
    size_t count = outbound_gather(outbound, pieces, 64, false);
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(text + len, pieces[i].iov_base, pieces[i].iov_len);
        len += pieces[i].iov_len;
    }
    text[len] = '\0';
    return text;
}

static void messages_are_sent_in_order(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    struct iovec pieces[2];
    assert_int_equal(outbound_gather(&outbound, pieces, 2, true), 0);
    assert_int_equal(push(&outbound, "one", 0), OUTBOUND_QUEUED);
    assert_int_equal(push(&outbound, "two", 0), OUTBOUND_QUEUED);
    assert_int_equal(push(&outbound, "three", 0), OUTBOUND_QUEUED);
    assert_string_equal(waiting(&outbound), "onetwothree");
    assert_int_equal(outbound_gather(&outbound, pieces, 2, false), 2);
    outbound_sent(&outbound, 4);
    assert_string_equal(waiting(&outbound), "wothree");
    assert_int_equal(outbound.count, 2);
    outbound_sent(&outbound, 2);
    assert_string_equal(waiting(&outbound), "three");
    outbound_sent(&outbound, 5);
    assert_int_equal(outbound.count + outbound_bytes(&outbound) + outbound.ring_bits, 0);
    outbound_free(&outbound);
}

static void newest_state_replaces_the_older(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    push(&outbound, "a1 ", 1);
    push(&outbound, "x ", 0);
    push(&outbound, "b1 ", 2);
    assert_int_equal(push(&outbound, "a2 longer ", 1), OUTBOUND_SUPERSEDED);
    assert_int_equal(push(&outbound, "b2 ", 2), OUTBOUND_SUPERSEDED);
    assert_string_equal(waiting(&outbound), "a2 longer x b2 ");
    assert_int_equal(outbound_bytes(&outbound), 15);
    outbound_free(&outbound);
}

static void partly_sent_message_is_not_replaced(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    push(&outbound, "a1", 1);
    outbound_sent(&outbound, 1);
    assert_int_equal(push(&outbound, "a2", 1), OUTBOUND_QUEUED);
    assert_int_equal(push(&outbound, "a3", 1), OUTBOUND_SUPERSEDED);
    assert_string_equal(waiting(&outbound), "1a3");
    outbound_free(&outbound);
}

static void pinned_message_is_not_replaced_until_something_is_sent(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    struct iovec pieces[2];
    push(&outbound, "a1", 1);
    push(&outbound, "b1", 2);
    push(&outbound, "c1", 3);
    outbound_gather(&outbound, pieces, 2, true);
    assert_int_equal(push(&outbound, "a2", 1), OUTBOUND_QUEUED);
    assert_int_equal(push(&outbound, "b2", 2), OUTBOUND_QUEUED);
    assert_int_equal(push(&outbound, "c2", 3), OUTBOUND_SUPERSEDED);
    assert_string_equal(waiting(&outbound), "a1b1c2a2b2");
    outbound_sent(&outbound, 2);
    assert_int_equal(push(&outbound, "b3", 2), OUTBOUND_SUPERSEDED);
    assert_string_equal(waiting(&outbound), "b3c2a2b2");
    outbound_free(&outbound);
}

static void queue_is_bounded_in_messages(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    for (uint32_t i = 0; i < LIMITS.messages_max; i++)
        assert_int_equal(push(&outbound, "x", i + 1), OUTBOUND_QUEUED);
    assert_int_equal(outbound_percent(&outbound, &LIMITS), 100);
    assert_int_equal(push(&outbound, "y", 0), OUTBOUND_FULL);
    assert_int_equal(push(&outbound, "z", 5), OUTBOUND_SUPERSEDED);
    for (int i = 0; i < OUTBOUND_RESERVE_MESSAGES; i++)
        assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of("!"), 0, true), OUTBOUND_QUEUED);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of("!"), 0, true), OUTBOUND_FULL);
    assert_string_equal(waiting(&outbound), "xxxxzxxxxxxxxxxxxxxx!!!!!!!!");
    outbound_free(&outbound);
    assert_int_equal(outbound.count + outbound_bytes(&outbound) + outbound.ring_bits, 0);
}

static struct blob *blob_of_length(size_t len)
{
    char bytes[4000] = {0};
    return blob_make(SLICE_NONE, (struct slice){bytes, len});
}

static void queue_is_bounded_in_bytes_except_for_a_single_message(void **state)
{
    (void)state;
    struct outbound outbound = {0};
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(3000), 1, false),
                     OUTBOUND_QUEUED);
    assert_int_equal(outbound_percent(&outbound, &LIMITS), 300);
    assert_int_equal(push(&outbound, "x", 0), OUTBOUND_FULL);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(4000), 1, false),
                     OUTBOUND_SUPERSEDED);
    outbound_sent(&outbound, 4000);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(600), 1, false),
                     OUTBOUND_QUEUED);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(400), 2, false),
                     OUTBOUND_QUEUED);
    assert_int_equal(outbound_percent(&outbound, &LIMITS), 100);
    assert_int_equal(push(&outbound, "x", 0), OUTBOUND_FULL);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(401), 2, false),
                     OUTBOUND_FULL);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(400), 2, false),
                     OUTBOUND_SUPERSEDED);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(401), 2, true),
                     OUTBOUND_SUPERSEDED);
    assert_int_equal(outbound_push(&outbound, &LIMITS, blob_of_length(500), 0, true),
                     OUTBOUND_QUEUED);
    assert_int_equal(outbound_bytes(&outbound), 600 + 401 + 500);
    outbound_free(&outbound);
}

static void blob_is_shared_by_queues(void **state)
{
    (void)state;
    struct outbound first = {0}, second = {0};
    struct blob *blob = blob_of("both");
    outbound_push(&first, &LIMITS, blob_share(blob), 0, false);
    outbound_push(&second, &LIMITS, blob_share(blob), 0, false);
    assert_int_equal(blob->refs, 3);
    outbound_sent(&first, 4);
    assert_int_equal(blob->refs, 2);
    outbound_free(&second);
    assert_int_equal(blob->refs, 1);
    blob_drop(&blob);
    outbound_free(&first);
}

/* ---- against a model ---- */

struct model_item {
    char text[48];
    size_t len;
    uint64_t key;
};

struct model {
    struct model_item items[64];
    size_t count;
    size_t sent;
    size_t pinned;
};

static size_t model_bytes(const struct model *model)
{
    size_t bytes = 0;
    for (size_t i = 0; i < model->count; i++)
        bytes += model->items[i].len;
    return bytes;
}

static enum outbound_result model_push(struct model *model, const struct outbound_limits *limits,
                                       const struct model_item *item, bool use_reserve)
{
    for (size_t i = 0; item->key && i < model->count; i++) {
        bool untouchable = i < model->pinned || (i == 0 && model->sent);
        if (untouchable || model->items[i].key != item->key)
            continue;
        size_t others = model_bytes(model) - model->items[i].len;
        if (others && others + item->len > limits->bytes_max && !use_reserve)
            return OUTBOUND_FULL;
        model->items[i] = *item;
        return OUTBOUND_SUPERSEDED;
    }
    size_t capacity = limits->messages_max + (use_reserve ? OUTBOUND_RESERVE_MESSAGES : 0);
    bool too_long = model->count && model_bytes(model) + item->len > limits->bytes_max;
    if (model->count >= capacity || (too_long && !use_reserve))
        return OUTBOUND_FULL;
    model->items[model->count++] = *item;
    return OUTBOUND_QUEUED;
}

static void model_send(struct model *model, size_t bytes)
{
    model->pinned = 0;
    model->sent += bytes;
    while (model->count && model->sent >= model->items[0].len) {
        model->sent -= model->items[0].len;
        memmove(model->items, model->items + 1, --model->count * sizeof(model->items[0]));
    }
}

static void compare(struct outbound *outbound, const struct model *model, bool pin)
{
    struct iovec pieces[PIECES_MAX];
    size_t count = outbound_gather(outbound, pieces, PIECES_MAX, pin);
    assert_int_equal(outbound->count, model->count);
    assert_int_equal(outbound_bytes(outbound), model_bytes(model));
    assert_int_equal(count, model->count < PIECES_MAX ? model->count : PIECES_MAX);
    for (size_t i = 0; i < count; i++) {
        size_t from = i == 0 ? model->sent : 0;
        assert_int_equal(pieces[i].iov_len, model->items[i].len - from);
        assert_memory_equal(pieces[i].iov_base, model->items[i].text + from, pieces[i].iov_len);
    }
}

static size_t gathered_bytes(const struct model *model)
{
    size_t bytes = 0;
    for (size_t i = 0; i < model->count && i < PIECES_MAX; i++)
        bytes += model->items[i].len;
    return bytes - model->sent;
}

static void push_both(struct outbound *outbound, struct model *model, struct random *random, int n)
{
    const struct outbound_limits limits = {.messages_max = 40, .bytes_max = 700};
    struct model_item item = {.key = random_below(random, 2) ? 1 + random_below(random, 12) : 0};
    bool use_reserve = random_below(random, 20) == 0;
    snprintf(item.text, sizeof(item.text), "%06d%040d", n, 0);
    item.len = 6 + random_below(random, 40);
    struct blob *blob = blob_make(SLICE_NONE, (struct slice){item.text, item.len});
    enum outbound_result expected = model_push(model, &limits, &item, use_reserve);
    assert_int_equal(outbound_push(outbound, &limits, blob, item.key, use_reserve), expected);
}

static void random_pushes_and_sends_match_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct outbound outbound = {0};
        struct model model = {0};
        struct random random;
        random_init_seeded(&random, seed);
        uint64_t pressure = 2 + seed % 8; /* some queues stay short, some are always full */
        for (int n = 0; n < 3000; n++) {
            if (random_below(&random, 10) < pressure) {
                push_both(&outbound, &model, &random, n);
            } else if (random_below(&random, 2)) {
                size_t bytes = random_below(&random, gathered_bytes(&model) + 1);
                outbound_sent(&outbound, bytes);
                model_send(&model, bytes);
            } else {
                compare(&outbound, &model, true);
                model.pinned = model.count < PIECES_MAX ? model.count : PIECES_MAX;
            }
            compare(&outbound, &model, false);
        }
        outbound_free(&outbound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_sent_in_order),
        cmocka_unit_test(newest_state_replaces_the_older),
        cmocka_unit_test(partly_sent_message_is_not_replaced),
        cmocka_unit_test(pinned_message_is_not_replaced_until_something_is_sent),
        cmocka_unit_test(queue_is_bounded_in_messages),
        cmocka_unit_test(queue_is_bounded_in_bytes_except_for_a_single_message),
        cmocka_unit_test(blob_is_shared_by_queues),
        cmocka_unit_test(random_pushes_and_sends_match_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
