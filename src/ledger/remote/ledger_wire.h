/*
 * Requests of the ledger and their outcomes as bytes, for a ledger that is another process.
 *
 * A request is its version, id, operation, the caller's time of day and its input; an answer is its
 * version, the request's id, status and, where that is OK, the outcome (wire.h describes the numbers and
 * texts). Operations are numbered in the order of LEDGER_OPERATIONS: whoever changes that list, an input or
 * an outcome raises LEDGER_WIRE_VERSION, and the two sides refuse one another until both have it.
 *
 * Decoding is strict. Every bound of the port holds for what comes out of it: ids have 1 to
 * LEDGER_ID_BYTES_MAX bytes, an operation has what it needs, limits are within theirs. What an input or
 * outcome points to is memory of the request it was decoded into, so the frame may go.
 */
#ifndef ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_H
#define ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_H

#include "base/buffer.h"
#include "ledger/ledger_request.h"

enum { LEDGER_WIRE_VERSION = 1 };

/* What stands before the input or the outcome. */
struct ledger_wire_head {
    uint64_t id;
    enum ledger_operation operation; /* of a request */
    int64_t wall_ms;                 /* of a request: the caller's time of day */
    enum ledger_status status;       /* of an answer */
};

/* Appends a request, or the answer to it; `out->failed` when memory is short. */
void ledger_wire_encode_request(struct buffer *out, uint64_t id, struct ledger_request *request);
void ledger_wire_encode_answer(struct buffer *out, uint64_t id, struct ledger_request *request);

/* Reads the head; `*body` is what follows. False: it is malformed or of another version. */
bool ledger_wire_decode_request_head(struct slice frame, struct ledger_wire_head *head,
                                     struct slice *body);
bool ledger_wire_decode_answer_head(struct slice frame, struct ledger_wire_head *head,
                                    struct slice *body);

/* Fills in the input of a request whose operation is set. False: it is malformed, or memory is short. */
bool ledger_wire_decode_input(struct ledger_request *request, struct slice body);

/* Fills in the outcome of a request that was asked; `status` is the head's. False: as above, or it is no answer
 * to this question; the outcome is then not fit to be given out. */
bool ledger_wire_decode_outcome(struct ledger_request *request, enum ledger_status status,
                                struct slice body);

#endif
