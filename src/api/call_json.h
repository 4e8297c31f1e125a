/* An ended call as the REST resources show it. */
#ifndef ROLLCALL_API_CALL_JSON_H
#define ROLLCALL_API_CALL_JSON_H

#include "base/buffer.h"
#include "ledger/ledger.h"

/* Writes a call as one of its two users, `user`, sees it. */
void call_json_write(struct buffer *json, struct slice user, const struct ledger_call *call);

#endif
