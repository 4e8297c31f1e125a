/* The parts that inputs and outcomes share on the wire, and the interface between their two files. */
#ifndef ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_INTERNAL_H
#define ROLLCALL_LEDGER_REMOTE_LEDGER_WIRE_INTERNAL_H

#include "ledger/ledger_request.h"
#include "peer/wire.h"

/* Lists are allocated from the request. */
static inline void *ledger_wire_alloc(void *request, size_t bytes)
{
    return ledger_request_alloc(request, bytes);
}

static inline void ledger_wire_ids(struct wire *wire, const struct slice **ids, size_t *count,
                                   size_t count_max)
{
    wire_ids(wire, ids, count, count_max, LEDGER_ID_BYTES_MAX);
}

static inline void ledger_wire_id(struct wire *wire, struct slice *id)
{
    wire_text(wire, id, 1, LEDGER_ID_BYTES_MAX);
}

static inline void ledger_wire_optional_id(struct wire *wire, struct slice *id)
{
    wire_text(wire, id, 0, LEDGER_ID_BYTES_MAX);
}

static inline void ledger_wire_sequence(struct wire *wire, uint64_t *sequence)
{
    wire_number(wire, sequence, INT64_MAX);
}

static inline void ledger_wire_settings(struct wire *wire, struct ledger_settings *settings)
{
    enum { VISIBILITIES = LEDGER_VISIBLE_NOBODY + 1, ADDS = LEDGER_GROUP_ADDS_CONTACTS_ONLY + 1 };
    wire_choice(wire, &settings->presence, VISIBILITIES);
    wire_choice(wire, &settings->last_seen, VISIBILITIES);
    wire_choice(wire, &settings->group_adds, ADDS);
    wire_bool(wire, &settings->hides_reads);
}

static inline void ledger_wire_appearance(struct wire *wire, struct ledger_appearance *appearance)
{
    wire_text(wire, &appearance->display_name, 0, LEDGER_DISPLAY_NAME_BYTES_MAX);
    wire_text(wire, &appearance->avatar_url, 0, LEDGER_AVATAR_URL_BYTES_MAX);
}

static inline void ledger_wire_call(struct wire *wire, struct ledger_call *call)
{
    ledger_wire_id(wire, &call->id);
    ledger_wire_id(wire, &call->caller);
    ledger_wire_id(wire, &call->callee);
    wire_text(wire, &call->reason, 1, LEDGER_REASON_BYTES_MAX);
    wire_signed(wire, &call->started_at_ms);
    wire_signed(wire, &call->answered_at_ms);
    wire_signed(wire, &call->ended_at_ms);
    wire_count(wire, &call->kept_max, UINT32_MAX);
}

/* Passes the outcome of an operation without its status. */
void ledger_wire_pass_outcome(struct wire *wire, enum ledger_operation operation,
                              union ledger_request_outcome *outcome);

#endif
