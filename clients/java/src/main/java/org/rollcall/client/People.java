package org.rollcall.client;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** What the server offers a user over HTTP. Answers are objects with the fields of the protocol. */
public final class People {
    /** Sends one request with the user's token. */
    interface Caller {
        CompletableFuture<Map<String, Object>> call(String method, String target, Object body);
    }

    private final Caller caller;

    People(Caller caller) {
        this.caller = caller;
    }

    /** Any request of the HTTP API; `body` may be null. */
    public CompletableFuture<Map<String, Object>> call(String method, String target, Object body) {
        return caller.call(method, target, body);
    }

    /** `friends` with their presence, and `has_more`; `after` and `status` may be null. */
    public CompletableFuture<Map<String, Object>> friends(String status, String after) {
        return call("GET", Api.query(Api.path("friends"), "status", status, "after", after), null);
    }

    /** The pending requests, as `incoming` and `outgoing`. */
    public CompletableFuture<Map<String, Object>> contactRequests() {
        return call("GET", Api.path("contact-requests"), null);
    }

    /** The request's `id` and `status`: pending, or accepted if that user had sent one too. */
    public CompletableFuture<Map<String, Object>> requestContact(String user) {
        return call("POST", Api.path("contact-requests"), Map.of("to", user));
    }

    public CompletableFuture<Void> acceptContact(String requestId) {
        return done("POST", Api.path("contact-requests", requestId, "accept"));
    }

    public CompletableFuture<Void> declineContact(String requestId) {
        return done("POST", Api.path("contact-requests", requestId, "decline"));
    }

    public CompletableFuture<Void> withdrawContactRequest(String requestId) {
        return done("DELETE", Api.path("contact-requests", requestId));
    }

    public CompletableFuture<Void> removeContact(String user) {
        return done("DELETE", Api.path("contacts", user));
    }

    public CompletableFuture<Void> block(String user) {
        return done("PUT", Api.path("blocks", user));
    }

    public CompletableFuture<Void> unblock(String user) {
        return done("DELETE", Api.path("blocks", user));
    }

    /** Creates a group; `chatId` null lets the server choose. */
    public CompletableFuture<Map<String, Object>> createChat(String chatId, List<String> members) {
        return call("POST", Api.path("chats"), Fields.of("chat_id", chatId, "members", members));
    }

    /** The one direct chat with a user. */
    public CompletableFuture<Map<String, Object>> directChat(String user) {
        return call("POST", Api.path("chats"), Map.of("direct_with", user));
    }

    /** `chats` by last activity, newest first, with `has_more` and `next_cursor`; `cursor` and `limit` may be null. */
    public CompletableFuture<Map<String, Object>> chats(String cursor, Integer limit) {
        return call("GET", Api.query(Api.path("chats"), "cursor", cursor, "limit", limit), null);
    }

    public CompletableFuture<Map<String, Object>> chat(String chatId) {
        return call("GET", Api.path("chats", chatId), null);
    }

    public CompletableFuture<Void> addMember(String chatId, String user) {
        return done("PUT", Api.path("chats", chatId, "members", user));
    }

    /** Removes a member or, with the own id, leaves. */
    public CompletableFuture<Void> removeMember(String chatId, String user) {
        return done("DELETE", Api.path("chats", chatId, "members", user));
    }

    public CompletableFuture<Void> addAdmin(String chatId, String user) {
        return done("PUT", Api.path("chats", chatId, "admins", user));
    }

    public CompletableFuture<Void> removeAdmin(String chatId, String user) {
        return done("DELETE", Api.path("chats", chatId, "admins", user));
    }

    /** Moves the read mark; completes with the mark. */
    public CompletableFuture<Long> markRead(String chatId, long sequence) {
        return call("POST", Api.path("chats", chatId, "read"), Map.of("sequence", sequence))
                .thenApply(mark -> Fields.number(mark, "sequence", 0));
    }

    /** A page of `messages` before or after a sequence; all but the chat may be null. */
    public CompletableFuture<Map<String, Object>> history(String chatId, Long beforeSequence, Long afterSequence, Integer limit) {
        return call("GET", Api.query(Api.path("chats", chatId, "messages"), "before_sequence", beforeSequence,
                "after_sequence", afterSequence, "limit", limit), null);
    }

    public CompletableFuture<Map<String, Object>> me() {
        return call("GET", Api.path("me"), null);
    }

    public CompletableFuture<Map<String, Object>> updateMe(Map<String, Object> settings) {
        return call("PATCH", Api.path("me"), settings);
    }

    /** The last `calls`, the latest first. */
    public CompletableFuture<Map<String, Object>> calls() {
        return call("GET", Api.path("calls"), null);
    }

    private CompletableFuture<Void> done(String method, String target) {
        return call(method, target, null).thenAccept(answer -> {});
    }
}
