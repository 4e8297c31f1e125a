/*
 * Encodes requests of the ledger and their outcomes, for a ledger in another process.
 *
 * A request is the version, its id, the operation, the caller's wall clock and the input. An answer is the
 * version, the request's id, the status and, if that is OK, the outcome. wire.h describes numbers and texts.
 * Operations are numbered in the order of LEDGER_OPERATIONS. A change of that list, of an input or of an
 * outcome needs a new LEDGER_WIRE_VERSION, and the two sides refuse each other until both have it.
 *
 * Decoding is strict, and every decoded value is within the bounds of the port: ids have 1 to
 * LEDGER_ID_BYTES_MAX bytes, an operation has the parts that it needs, limits are in range. A decoded input
 * or outcome points to memory of its request, so the frame may be freed.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_H
#define ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_H

#include "base/buffer.h"
#include "ledger/ledger_request.h"

enum { LEDGER_WIRE_VERSION = 12 };

/* The part of a frame before the input or the outcome. */
struct ledger_wire_head {
    uint64_t id;
    enum ledger_operation operation; /* of a request */
    int64_t wall_ms;                 /* of a request: the caller's wall clock */
    enum ledger_status status;       /* of an answer */
};

/* Append a request, or the answer to it; `out->failed` is set when out of memory. */
void ledger_wire_encode_request(struct buffer *out, uint64_t id, struct ledger_request *request);
void ledger_wire_encode_answer(struct buffer *out, uint64_t id, struct ledger_request *request);

/* Read the head; `*body` is what follows. Return false when it is malformed or of another version. */
bool ledger_wire_decode_request_head(struct slice frame, struct ledger_wire_head *head,
                                     struct slice *body);
bool ledger_wire_decode_answer_head(struct slice frame, struct ledger_wire_head *head,
                                    struct slice *body);

/* Decodes the input of a request whose operation is set. Returns false when the input is malformed, or out of
 * memory. */
bool ledger_wire_decode_input(struct ledger_request *request, struct slice body);

/* Decodes the outcome of a sent request; `status` is from the head. Returns false, with an outcome that must
 * not be used, when the body is malformed or does not fit the request, or when out of memory. */
bool ledger_wire_decode_outcome(struct ledger_request *request, enum ledger_status status,
                                struct slice body);

#endif
