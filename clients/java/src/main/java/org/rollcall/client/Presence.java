package org.rollcall.client;

import java.util.Map;

/**
 * The presence of a user. `status` is online, away, offline or unknown; `version` grows with every change of that user and
 * is 0 where the status is unknown. `fields` has all fields as the server sent them.
 */
public record Presence(String userId, String status, boolean inCall, String lastSeen, long version, Map<String, Object> fields) {
    static Presence of(Map<String, Object> fields) {
        return new Presence(Fields.text(fields, "user_id"), Fields.text(fields, "status"), Fields.flag(fields, "in_call"),
                Fields.text(fields, "last_seen"), Fields.number(fields, "version", 0), fields);
    }
}
