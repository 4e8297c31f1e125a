#include "api/chat_json.h"

#include "api/settings_json.h"
#include "text/time_text.h"

struct slice chat_json_kind(enum ledger_chat_kind kind)
{
    return kind == LEDGER_CHAT_DIRECT ? SLICE("direct") : SLICE("group");
}

static void write_ids(struct buffer *out, struct slice key, const struct slice *ids, size_t count)
{
    json_write_key(out, key);
    json_write_array(out);
    for (size_t i = 0; i < count; i++)
        json_write_string(out, ids[i]);
    json_write_array_end(out);
}

static void write_chat_profiles(struct buffer *out, const struct ledger_chat *chat)
{
    json_write_key(out, SLICE("profiles"));
    json_write_object(out);
    for (size_t i = 0; i < chat->profile_count; i++) {
        const struct ledger_chat_profile *profile = &chat->profiles[i];
        if (!profile->appearance.display_name.len && !profile->appearance.avatar_url.len)
            continue;
        json_write_key(out, profile->user);
        json_write_object(out);
        settings_json_write_appearance(out, &profile->appearance);
        json_write_object_end(out);
    }
    json_write_object_end(out);
    json_write_key(out, SLICE("read"));
    json_write_object(out);
    for (size_t i = 0; i < chat->profile_count; i++)
        if (chat->profiles[i].read_sequence)
            json_write_key_int(out, chat->profiles[i].user,
                               (int64_t)chat->profiles[i].read_sequence);
    json_write_object_end(out);
}

void chat_json_write(struct buffer *out, const struct ledger_chat *chat, bool with_profiles)
{
    char activity[TIME_TEXT_LEN];
    time_text_write(activity, chat->activity_ms);
    json_write_object(out);
    json_write_key_string(out, SLICE("chat_id"), chat->id);
    json_write_key_string(out, SLICE("kind"), chat_json_kind(chat->kind));
    write_ids(out, SLICE("members"), chat->members, chat->member_count);
    write_ids(out, SLICE("admins"), chat->admins, chat->admin_count);
    json_write_key_bool(out, SLICE("members_can_add"), chat->members_can_add);
    json_write_key_int(out, SLICE("latest_sequence"), (int64_t)chat->latest_sequence);
    json_write_key_int(out, SLICE("unread"), (int64_t)chat->unread);
    json_write_key_string(out, SLICE("last_activity"), (struct slice){activity, TIME_TEXT_LEN});
    if (with_profiles)
        write_chat_profiles(out, chat);
    json_write_object_end(out);
}

void chat_json_reply(struct exchange *exchange, const struct ledger_chat_outcome *outcome)
{
    struct buffer json = BUFFER_INIT;
    if (outcome->status != LEDGER_OK) {
        chat_json_error(&exchange, outcome->status);
        return;
    }
    chat_json_write(&json, &outcome->chat, true);
    exchange_reply_json(&exchange, outcome->created ? 201 : 200, &json);
}

void chat_json_error(struct exchange **exchange, enum ledger_status status)
{
    switch (status) {
    case LEDGER_NOT_FOUND:
        exchange_error(exchange, 404, ERROR_NOT_FOUND, "there is no such chat");
        break;
    case LEDGER_CONFLICT:
        exchange_error(exchange, 409, ERROR_INVALID_MESSAGE, "this chat_id is in use");
        break;
    case LEDGER_LIMIT:
        exchange_error(exchange, 400, ERROR_INVALID_MESSAGE, "a chat has at most 10000 members");
        break;
    case LEDGER_INVALID:
        exchange_error(exchange, 400, ERROR_INVALID_MESSAGE,
                       "ids are strings of 1 to 128 bytes, no control characters; that of a new "
                       "chat has no colon and does not begin with \"direct\"");
        break;
    default:
        api_ledger_error(exchange, status);
        break;
    }
}
