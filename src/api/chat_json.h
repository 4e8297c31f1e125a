/* A chat as the REST resources show it, and what they answer when there is none to show. */
#ifndef ROLLCALL_API_CHAT_JSON_H
#define ROLLCALL_API_CHAT_JSON_H

#include "api/api_context.h"

/* {"chat_id","members","latest_sequence","unread"} */
void chat_json_write(struct buffer *out, const struct ledger_chat *chat);

/* The answer to a ledger status other than OK. A block between two users is refused in the words of
 * every other refusal: it does not say whose it is, nor that there is one. */
void chat_json_error(struct exchange **exchange, enum ledger_status status);

#endif
