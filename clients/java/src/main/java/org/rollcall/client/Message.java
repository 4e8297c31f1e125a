package org.rollcall.client;

import java.util.Map;

/**
 * A message of a chat. `sequence` is dense within the chat, from 1. A deleted message has no body, a system message no
 * sender. `fields` has all fields; `client_message_id` is among them on messages that this client sent.
 */
public record Message(String chatId, String messageId, long sequence, String senderId, String body, Map<String, Object> fields) {
    static Message of(Map<String, Object> fields) {
        return new Message(Fields.text(fields, "chat_id"), Fields.text(fields, "message_id"), Fields.number(fields, "sequence", 0),
                Fields.text(fields, "sender_id"), Fields.text(fields, "body"), fields);
    }
}
