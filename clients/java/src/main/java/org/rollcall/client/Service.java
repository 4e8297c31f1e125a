package org.rollcall.client;

import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * The service API, for an application's backend: synchronous, and thread-safe because it keeps no state. It acts for the
 * application, without privacy or consent, so every call names whom it acts for. The key is rk_…, from `rollcall key
 * create`, or a token with the scope `service`; it never belongs in an app. Failures are RollcallExceptions.
 */
public final class Service {
    private final Api api;
    private final String key;

    public Service(String url, String key) {
        this(url, key, new JdkTransport());
    }

    public Service(String url, String key, Transport transport) {
        this.api = new Api(transport, url);
        this.key = key;
    }

    /** Delivers any JSON value to all devices of these users; returns how many of them have one. `event` may be null. */
    public long deliverToUsers(List<String> users, String event, Object data) {
        return deliver(Map.of("users", users), event, data);
    }

    public long deliverToChat(String chatId, String event, Object data) {
        return deliver(Map.of("chat", chatId), event, data);
    }

    public long deliverToEveryone(String event, Object data) {
        return deliver(Map.of("everyone", true), event, data);
    }

    private long deliver(Map<String, Object> to, String event, Object data) {
        Map<String, Object> body = Fields.of("to", to, "event", event);
        body.put("data", data);
        return Fields.number(call("POST", Api.path("service", "deliver"), body), "accepted", 0);
    }

    public void addContact(String user, String other) {
        call("PUT", Api.path("service", "contacts", user, other), null);
    }

    public void removeContact(String user, String other) {
        call("DELETE", Api.path("service", "contacts", user, other), null);
    }

    /** Makes this the whole list of a user's contacts. */
    public void setContacts(String user, List<String> contacts) {
        call("PUT", Api.path("service", "users", user, "contacts"), Map.of("contacts", contacts));
    }

    /**
     * Streams lines of JSON: {"contact":["a","b"]}, {"block":[…]}, {"user":{…}}, {"chat":{…}}. Returns the counts and the first
     * `errors`. Importing the same lines again changes nothing, so an import that broke off may start again.
     */
    public Map<String, Object> importLines(InputStream lines) {
        return wait(api.exchange(key, "POST", Api.path("service", "import"), "application/x-ndjson", lines));
    }

    /** Creates a group; `chatId` null lets the server choose. */
    public Map<String, Object> createChat(String chatId, List<String> members) {
        return call("POST", Api.path("service", "chats"), Fields.of("chat_id", chatId, "members", members));
    }

    public void addMember(String chatId, String user) {
        call("PUT", Api.path("service", "chats", chatId, "members", user), null);
    }

    public void removeMember(String chatId, String user) {
        call("DELETE", Api.path("service", "chats", chatId, "members", user), null);
    }

    /** Sends as a user or, with `senderId` null, as the system. The same clientMessageId is stored once. */
    public MessageAck sendMessage(String chatId, String senderId, String clientMessageId, String body) {
        return MessageAck.of(call("POST", Api.path("service", "chats", chatId, "messages"),
                Fields.of("sender_id", senderId, "client_message_id", clientMessageId, "body", body)));
    }

    /** Leaves a tombstone: the sequence stays, the body goes. */
    public void deleteMessage(String chatId, long sequence) {
        call("DELETE", Api.path("service", "chats", chatId, "messages", String.valueOf(sequence)), null);
    }

    /** Unfiltered presence. */
    public List<Presence> presence(List<String> users) {
        Map<String, Object> answer = call("GET", Api.query(Api.path("service", "presence"), "users", String.join(",", users)), null);
        List<Presence> presences = new ArrayList<>();
        for (Map<String, Object> each : Fields.objects(answer, "presences")) presences.add(Presence.of(each));
        return presences;
    }

    /** A page of the `users` who are online, and the `next` to ask after; `after` and `limit` may be null. */
    public Map<String, Object> online(String after, Integer limit) {
        return call("GET", Api.query(Api.path("service", "online"), "after", after, "limit", limit), null);
    }

    /** Everything that is stored of a user. */
    public Map<String, Object> exportUser(String user) {
        return call("GET", Api.path("service", "users", user, "export"), null);
    }

    /** Returns true when the user is erased. False: it takes longer and goes on; ask again. */
    public boolean eraseUser(String user) {
        return call("DELETE", Api.path("service", "users", user), null).isEmpty();
    }

    private Map<String, Object> call(String method, String target, Object body) {
        return wait(api.call(key, method, target, body));
    }

    private static Map<String, Object> wait(CompletableFuture<Map<String, Object>> answer) {
        try {
            return answer.join();
        } catch (RuntimeException failure) {
            throw Loop.errorOf(failure);
        }
    }
}
