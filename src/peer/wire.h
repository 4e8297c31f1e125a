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
 * bytes. Texts point into the input; the reader's caller provides the memory of lists.
 */
#ifndef ROLLCALL_PEER_WIRE_H
#define ROLLCALL_PEER_WIRE_H

#include "base/buffer.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns memory that lasts as long as the values that are read; NULL when there is none. */
typedef void *(*wire_alloc)(void *arg, size_t bytes);

struct wire {
    struct buffer *out; /* NULL when reading */
    struct slice in;    /* not read yet */
    wire_alloc alloc;   /* of lists; NULL: none is read */
    void *alloc_arg;
    bool failed;
};

struct wire wire_writing(struct buffer *out);
struct wire wire_reading(struct slice in, wire_alloc alloc, void *alloc_arg);

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

/* Passes exactly `len` bytes. */
void wire_bytes(struct wire *wire, void *bytes, size_t len);

/* Passes the rest of the input, or appends to the output: the last part of a frame. */
void wire_rest(struct wire *wire, struct slice *rest);

/* Passes the length of a list. When reading, *items becomes zeroed memory for `*count` items. Returns false
 * when there are no items to pass. Each item must take at least one byte. */
bool wire_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
               size_t count_max);

/* Passes a list of ids of 1 to `bytes_max` bytes. */
void wire_ids(struct wire *wire, const struct slice **ids, size_t *count, size_t count_max,
              size_t bytes_max);

#endif
