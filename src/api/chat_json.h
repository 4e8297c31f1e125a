/* Chats as the REST resources show them, and the answers when one cannot be shown. */
#ifndef ROLLCALL_API_CHAT_JSON_H
#define ROLLCALL_API_CHAT_JSON_H

#include "api/api_context.h"

/* Returns "group" or "direct". */
struct slice chat_json_kind(enum ledger_chat_kind kind);

/* Writes a chat; `with_profiles` with the names and pictures of its members, and how far they have read. */
void chat_json_write(struct buffer *out, const struct ledger_chat *chat, bool with_profiles);

/* Answers a chat with its profiles, or the error of a status other than OK. */
void chat_json_reply(struct exchange *exchange, const struct ledger_chat_outcome *outcome);

/* Answers a ledger status other than OK. A refusal because of a block has the same text as every other refusal,
 * so that nobody can tell that there is a block, or whose. */
void chat_json_error(struct exchange **exchange, enum ledger_status status);

#endif
