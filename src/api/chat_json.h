/* Chats as the REST resources show them, and the answers when one cannot be shown. */
#ifndef ROLLCALL_API_CHAT_JSON_H
#define ROLLCALL_API_CHAT_JSON_H

#include "api/api_context.h"

/* Writes {"chat_id","members","latest_sequence","unread"}. */
void chat_json_write(struct buffer *out, const struct ledger_chat *chat);

/* Answers a ledger status other than OK. A refusal because of a block has the same text as every other refusal,
 * so that nobody can tell that there is a block, or whose. */
void chat_json_error(struct exchange **exchange, enum ledger_status status);

#endif
