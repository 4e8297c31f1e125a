package org.rollcall.client;

import java.util.Map;

/** The acknowledgement of a message. `duplicate`: the server had stored it already. */
public record MessageAck(String messageId, long sequence, boolean duplicate, Map<String, Object> fields) {
    static MessageAck of(Map<String, Object> fields) {
        return new MessageAck(Fields.text(fields, "message_id"), Fields.number(fields, "sequence", 0),
                Fields.flag(fields, "duplicate"), fields);
    }
}
