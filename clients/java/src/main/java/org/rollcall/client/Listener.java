package org.rollcall.client;

import java.util.Map;

/**
 * Gets the events of a client, one at a time and in order, on the client's thread: it must not block. It may call any
 * method of the client, but must not wait for the future that it returns.
 */
public interface Listener {
    default void onState(StateChange change) {}

    default void onPresence(Presence presence) {}

    default void onMessage(Message message) {}

    /** A chat was opened, also after a reconnect: `presences`, `typing`, `latest_sequence`. */
    default void onChat(Map<String, Object> snapshot) {}

    default void onTyping(String chatId, String userId, boolean isTyping) {}

    /** An error that no future reports. It is not fatal: onState reports the end. */
    default void onError(RollcallException error) {}

    /** Every other push of the server, such as call_incoming, delivery and contact_request. */
    default void onPush(String type, Map<String, Object> fields) {}
}
