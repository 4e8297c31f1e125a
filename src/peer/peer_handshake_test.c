/* The handshake without a socket: accepted and refused peers, with bytes in pieces of any size. */
#include "peer/peer_handshake.h"

#include "support/exact_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct slice SECRET = SLICE("correct horse battery staple");

struct pair {
    struct random random;
    struct peer_handshake dialler, acceptor;
    struct buffer from_dialler, from_acceptor;
};

static void begin(struct pair *pair, struct slice dialler_secret, struct slice acceptor_secret)
{
    *pair = (struct pair){0};
    random_init_seeded(&pair->random, 7);
    peer_handshake_begin(&pair->dialler, PEER_DIALS, dialler_secret, SLICE("north"), &pair->random,
                         &pair->from_dialler);
    peer_handshake_begin(&pair->acceptor, PEER_ACCEPTS, acceptor_secret, SLICE("south"),
                         &pair->random, &pair->from_acceptor);
}

static void end(struct pair *pair)
{
    buffer_free(&pair->from_dialler);
    buffer_free(&pair->from_acceptor);
}

/* Lets a side take the bytes from a copy of their exact length. Returns how many it took. */
static size_t take(struct peer_handshake *handshake, struct slice bytes, struct buffer *answer)
{
    char *copy = exact_copy(bytes);
    size_t taken = peer_handshake_take(handshake, (struct slice){copy, bytes.len}, answer);
    free(copy);
    return taken;
}

/* Carries the bytes of one direction, in pieces. */
static void carry(struct buffer *from, struct peer_handshake *to, struct buffer *answer,
                  size_t piece)
{
    while (from->len > 0) {
        struct slice part = slice_first(buffer_slice(from), piece);
        size_t taken = take(to, part, answer);
        assert_true(taken == part.len || to->state == PEER_HANDSHAKE_REFUSED);
        buffer_consume(from, part.len);
    }
}

static void carry_both_ways(struct pair *pair, size_t piece)
{
    for (int round = 0; round < 2; round++) {
        carry(&pair->from_dialler, &pair->acceptor, &pair->from_acceptor, piece);
        carry(&pair->from_acceptor, &pair->dialler, &pair->from_dialler, piece);
    }
}

static void both_sides_authenticate_and_get_the_names(void **unused)
{
    (void)unused;
    static const size_t pieces[] = {1, 7, 1000};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct pair pair;
        begin(&pair, SECRET, SECRET);
        carry_both_ways(&pair, pieces[i]);
        assert_int_equal(pair.dialler.state, PEER_HANDSHAKE_DONE);
        assert_int_equal(pair.acceptor.state, PEER_HANDSHAKE_DONE);
        assert_true(slice_is(peer_handshake_peer_name(&pair.dialler), "south"));
        assert_true(slice_is(peer_handshake_peer_name(&pair.acceptor), "north"));
        end(&pair);
    }
}

static void a_wrong_secret_is_refused_before_the_acceptor_sends_its_proof(void **unused)
{
    (void)unused;
    struct pair pair;
    begin(&pair, SLICE("guess"), SECRET);
    carry(&pair.from_dialler, &pair.acceptor, &pair.from_acceptor, 1000);
    carry(&pair.from_acceptor, &pair.dialler, &pair.from_dialler, 1000);
    carry(&pair.from_dialler, &pair.acceptor, &pair.from_acceptor, 1000);
    assert_int_equal(pair.acceptor.state, PEER_HANDSHAKE_REFUSED);
    assert_non_null(strstr(pair.acceptor.why, "peer.secret"));
    assert_int_equal(pair.from_acceptor.len, 0);
    assert_non_null(strstr(peer_handshake_close_reason(&pair.dialler), "peer.secret"));
    end(&pair);
}

static void the_acceptor_must_prove_the_secret_too(void **unused)
{
    (void)unused;
    struct pair pair;
    struct buffer none = BUFFER_INIT;
    uint8_t zeros[PEER_PROOF_BYTES] = {0};
    begin(&pair, SECRET, SECRET);
    carry(&pair.from_dialler, &pair.acceptor, &pair.from_acceptor, 1000);
    carry(&pair.from_acceptor, &pair.dialler, &none, 1000);
    take(&pair.dialler, (struct slice){(char *)zeros, sizeof(zeros)}, &none);
    assert_int_equal(pair.dialler.state, PEER_HANDSHAKE_REFUSED);
    buffer_free(&none);
    end(&pair);
}

/* The acceptor has no secret and sends back the proof it got. */
static void a_reflected_proof_is_refused(void **unused)
{
    (void)unused;
    struct pair pair;
    struct buffer proof = BUFFER_INIT, none = BUFFER_INIT;
    begin(&pair, SECRET, SECRET);
    carry(&pair.from_dialler, &pair.acceptor, &pair.from_acceptor, 1000);
    carry(&pair.from_acceptor, &pair.dialler, &proof, 1000);
    assert_int_equal(proof.len, PEER_PROOF_BYTES);
    take(&pair.dialler, buffer_slice(&proof), &none);
    assert_int_equal(pair.dialler.state, PEER_HANDSHAKE_REFUSED);
    buffer_free(&proof);
    buffer_free(&none);
    end(&pair);
}

static void a_replayed_handshake_is_refused(void **unused)
{
    (void)unused;
    struct pair original, pair;
    struct buffer recorded = BUFFER_INIT, answer = BUFFER_INIT;
    begin(&original, SECRET, SECRET);
    buffer_append_slice(&recorded, buffer_slice(&original.from_dialler));
    carry(&original.from_dialler, &original.acceptor, &original.from_acceptor, 1000);
    carry(&original.from_acceptor, &original.dialler, &recorded, 1000);
    begin(&pair, SECRET, SECRET);
    random_bytes(&pair.random, pair.acceptor.ours.nonce, PEER_NONCE_BYTES);
    take(&pair.acceptor, buffer_slice(&recorded), &answer);
    assert_int_equal(pair.acceptor.state, PEER_HANDSHAKE_REFUSED);
    buffer_free(&recorded);
    buffer_free(&answer);
    end(&original);
    end(&pair);
}

static void a_changed_byte_anywhere_is_refused(void **unused)
{
    (void)unused;
    size_t hello_len = PEER_HELLO_BYTES + strlen("north");
    for (size_t at = 0; at < hello_len; at++) {
        struct pair pair;
        begin(&pair, SECRET, SECRET);
        pair.from_dialler.data[at] ^= 0x40;
        carry_both_ways(&pair, 1000);
        assert_int_not_equal(pair.acceptor.state, PEER_HANDSHAKE_DONE);
        assert_int_not_equal(pair.dialler.state, PEER_HANDSHAKE_DONE);
        end(&pair);
    }
}

static void bytes_behind_the_handshake_are_not_taken(void **unused)
{
    (void)unused;
    struct pair pair;
    begin(&pair, SECRET, SECRET);
    carry(&pair.from_dialler, &pair.acceptor, &pair.from_acceptor, 1000);
    carry(&pair.from_acceptor, &pair.dialler, &pair.from_dialler, 1000);
    buffer_append_text(&pair.from_dialler, "frames");
    assert_int_equal(take(&pair.acceptor, buffer_slice(&pair.from_dialler), &pair.from_acceptor),
                     PEER_PROOF_BYTES);
    assert_int_equal(pair.acceptor.state, PEER_HANDSHAKE_DONE);
    end(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_authenticate_and_get_the_names),
        cmocka_unit_test(a_wrong_secret_is_refused_before_the_acceptor_sends_its_proof),
        cmocka_unit_test(the_acceptor_must_prove_the_secret_too),
        cmocka_unit_test(a_reflected_proof_is_refused),
        cmocka_unit_test(a_replayed_handshake_is_refused),
        cmocka_unit_test(a_changed_byte_anywhere_is_refused),
        cmocka_unit_test(bytes_behind_the_handshake_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
