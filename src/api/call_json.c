#include "api/call_json.h"

#include "api/admin_json.h"
#include "text/json.h"
#include "text/time_text.h"

void call_json_write(struct buffer *json, struct slice user, const struct ledger_call *call)
{
    bool outgoing = slice_equal(call->caller, user);
    int64_t talked_ms = call->answered_at_ms ? call->ended_at_ms - call->answered_at_ms : 0;
    json_write_object(json);
    json_write_key_string(json, SLICE("call_id"), call->id);
    json_write_key_string(json, SLICE("peer"), outgoing ? call->callee : call->caller);
    json_write_key_string(json, SLICE("direction"),
                          outgoing ? SLICE("outgoing") : SLICE("incoming"));
    json_write_key_string(json, SLICE("reason"), call->reason);
    admin_write_time(json, SLICE("started_at"), call->started_at_ms);
    admin_write_time(json, SLICE("answered_at"),
                     call->answered_at_ms ? call->answered_at_ms : TIME_NONE);
    admin_write_time(json, SLICE("ended_at"), call->ended_at_ms);
    json_write_key_int(json, SLICE("duration_seconds"), talked_ms > 0 ? talked_ms / 1000 : 0);
    json_write_object_end(json);
}
