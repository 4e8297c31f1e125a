/*
 * One description of a value, two directions: a function that passes the fields of a struct to the calls
 * below writes them when the wire writes, and reads them when it reads. So the two can never differ.
 *
 *     static void pass_point(struct wire *wire, struct point *point)
 *     {
 *         wire_number(wire, &point->x, X_MAX);
 *         wire_text(wire, &point->name, NAME_BYTES_MIN, NAME_BYTES_MAX);
 *     }
 *
 * Writing leaves what is passed as it is, so that it may be constant.
 *
 * Numbers are of variable length (seven bits a byte, the lowest first, never longer than needed); signed
 * ones alternate (0, -1, 1, -2, …); texts and lists have their length before them.
 *
 * Reading believes nothing: a length beyond what is left or beyond its bound, a number above its bound, a
 * byte that is no truth value, or bytes left over make the reading fail. Failure is sticky, as with
 * buffers: everything read after it is zero, and wire_end() tells. A list takes memory only for items the
 * input has bytes for. Texts point into the input; lists are allocated from the request.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_WIRE_H
#define ROLLCALL_LEDGER_REMOTE_WIRE_H

#include "base/buffer.h"
#include "ledger/ledger_request.h"

struct wire {
    struct buffer *out;             /* NULL: reads */
    struct slice in;                /* what is left to be read */
    struct ledger_request *request; /* whose memory lists take */
    bool failed;
};

struct wire wire_writing(struct buffer *out);
struct wire wire_reading(struct slice in, struct ledger_request *request);

/* Whether all went well and, reading, nothing is left. */
bool wire_end(const struct wire *wire);

void wire_fail(struct wire *wire);

/* At most `max`. */
void wire_number(struct wire *wire, uint64_t *value, uint64_t max);
void wire_count(struct wire *wire, uint32_t *value, uint32_t max);
void wire_signed(struct wire *wire, int64_t *value);
void wire_bool(struct wire *wire, bool *value);

/* An enum with so many values. */
void wire_choice(struct wire *wire, unsigned *value, unsigned count);

void wire_text(struct wire *wire, struct slice *text, size_t bytes_min, size_t bytes_max);

/* The length of a list, and its items: reading, *items becomes zeroed memory for `*count` of them. False:
 * there is nothing to pass. Each item takes a byte at least. */
bool wire_list(struct wire *wire, const void **items, size_t *count, size_t item_bytes,
               size_t count_max);

/* A list of texts that are ids. */
void wire_ids(struct wire *wire, const struct slice **ids, size_t *count, size_t count_max);

#endif
