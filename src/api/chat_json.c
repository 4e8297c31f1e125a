#include "api/chat_json.h"

void chat_json_write(struct buffer *out, const struct ledger_chat *chat)
{
    json_write_object(out);
    json_write_key_string(out, SLICE("chat_id"), chat->id);
    json_write_key(out, SLICE("members"));
    json_write_array(out);
    for (size_t i = 0; i < chat->member_count; i++)
        json_write_string(out, chat->members[i]);
    json_write_array_end(out);
    json_write_key_int(out, SLICE("latest_sequence"), (int64_t)chat->latest_sequence);
    json_write_key_int(out, SLICE("unread"), (int64_t)chat->unread);
    json_write_object_end(out);
}

void chat_json_error(struct exchange **exchange, enum ledger_status status)
{
    switch (status) {
    case LEDGER_NOT_FOUND:
        exchange_error(exchange, 404, ERROR_NOT_FOUND, "there is no such chat");
        break;
    case LEDGER_CONFLICT:
        exchange_error(exchange, 409, ERROR_INVALID_MESSAGE,
                       "this chat_id belongs to a chat with other members");
        break;
    case LEDGER_LIMIT:
        exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "a chat has at most 10000 members");
        break;
    case LEDGER_INVALID:
        exchange_error(exchange, 400, ERROR_INVALID_MESSAGE,
                       "ids are strings of 1 to 128 bytes, no control characters");
        break;
    default:
        api_ledger_error(exchange, status);
        break;
    }
}
