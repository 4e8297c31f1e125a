/*
 * One description of a value for both directions. A function passes the fields of a struct to the functions
 * below; they write the fields when the wire writes, and read them when it reads. So encoder and decoder
 * cannot differ.
 *
 *     static void pass_point(struct wire *wire, struct point *point)
 *     {
 *         wire_number(wire, &point->x, X_MAX);
 *         wire_text(wire, &point->name, NAME_BYTES_MIN, NAME_BYTES_MAX);
 *     }
 *
 * Writing does not change the value, so that it may be constant.
 *
 * Numbers have a variable length (seven bits per byte, the lowest first, never longer than needed). Signed
 * numbers alternate (0, -1, 1, -2, …). A length precedes each text and each list.
 *
 * Reading trusts nothing. It fails on a length beyond the input or its bound, a number above its bound, a byte
 * that is not a valid boolean, and bytes left over. Failure is sticky, as in buffers: everything read after
 * it is zero, and wire_end() returns false. A list takes memory only for items for which the input has
 * bytes. Texts point into the input; lists are allocated from the request.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_WIRE_H
#define ROLLCALL_LEDGER_REMOTE_WIRE_H

#include "base/buffer.h"
#include "ledger/ledger_request.h"

struct wire {
    struct buffer *out;             /* NULL when reading */
    struct slice in;                /* not read yet */
    struct ledger_request *request; /* provides the memory of lists */
    bool failed;
};

struct wire wire_writing(struct buffer *out);
struct wire wire_reading(struct slice in, struct ledger_request *request);

/* Returns whether nothing failed and, when reading, nothing is left. */
bool wire_end(const struct wire *wire);

void wire_fail(struct wire *wire);

/* Pass a number of at most `max`. */
void wire_number(struct wire *wire, uint64_t *value, uint64_t max);
void wire_count(struct wire *wire, uint32_t *value, uint32_t max);
void wire_signed(struct wire *wire, int64_t *value);
void wire_bool(struct wire *wire, bool *value);

/* Passes an enum with `count` values. */
void wire_choice(struct wire *wire, unsigned *value, unsigned count);

void wire_text(struct wire *wire, struct slice *text, size_t bytes_min, size_t bytes_max);

/* Passes the length of a list. When reading, *items becomes zeroed memory for `*count` items. Returns false
 * when there are no items to pass. Each item must take at least one byte. */
bool wire_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
               size_t count_max);

/* Passes a list of ids. */
void wire_ids(struct wire *wire, const struct slice **ids, size_t *count, size_t count_max);

#endif
