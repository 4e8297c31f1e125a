package org.rollcall.client;

import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;

/**
 * The connection of one user to a Rollcall server: presence, chats and calls. It reconnects by itself.
 *
 * <pre>
 * RollcallClient client = RollcallClient.builder("https://rollcall.example.org")
 *         .tokenSupplier(() -&gt; fetchToken()).listener(listener).build();
 * client.connect().join();
 * client.subscribePresence(List.of("alice", "bob"));
 * client.sendMessage("team", "good morning");
 * </pre>
 *
 * The application subscribes to users, opens chats and sends messages once; the client restores and repeats them after
 * lost connections (Link has the states), until close(). All methods may be called from any thread and return at once.
 * Futures complete on the client's thread, so their callbacks must not block.
 */
public final class RollcallClient implements AutoCloseable {
    /** Opens a chat with the next message. */
    public static final long LATEST = Chats.UNKNOWN;

    private final Loop loop = new Loop();
    private final TokenSource tokens;
    private final Session session;
    private final String deviceId;
    private final Api api;

    private RollcallClient(Builder builder) {
        deviceId = builder.deviceId != null ? builder.deviceId : UUID.randomUUID().toString();
        tokens = new TokenSource(builder.token, builder.supplier);
        Transport transport = builder.transport != null ? builder.transport : new JdkTransport();
        URI address = URI.create(Api.base(builder.url, "ws") + Api.query("/v1/ws", "device_id", deviceId));
        session = new Session(loop, transport, address, tokens, new Backoff(new Random()), builder.listener);
        api = new Api(transport, builder.url);
    }

    public static Builder builder(String url) {
        return new Builder(url);
    }

    /** The options of a client: an address and one of token and tokenSupplier are required. */
    public static final class Builder {
        private final String url;
        private String token;
        private Supplier<? extends CompletionStage<String>> supplier;
        private String deviceId;
        private Transport transport;
        private Listener listener = new Listener() {};

        private Builder(String url) {
            this.url = url;
        }

        public Builder token(String token) {
            this.token = token;
            return this;
        }

        /** Called for each fresh token, on the client's thread. If it fails with UNAUTHENTICATED, the client stops. */
        public Builder tokenSupplier(Supplier<? extends CompletionStage<String>> supplier) {
            this.supplier = supplier;
            return this;
        }

        /** Stays the same after reconnects; random if not given. */
        public Builder deviceId(String deviceId) {
            this.deviceId = deviceId;
            return this;
        }

        public Builder transport(Transport transport) {
            this.transport = transport;
            return this;
        }

        public Builder listener(Listener listener) {
            this.listener = listener;
            return this;
        }

        public RollcallClient build() {
            return new RollcallClient(this);
        }
    }

    // Connection

    /** Completes with the next READY. During a back-off it reconnects at once. */
    public CompletableFuture<Void> connect() {
        return onLoop(session::connect);
    }

    /** Disconnects. Pending requests and messages fail with CLOSED; connect() may follow. */
    @Override
    public void close() {
        loop.run(session::close);
    }

    public State state() {
        return session.link.state();
    }

    /** The user of the token, as the server reports it; null before the first connection. */
    public String userId() {
        return session.userId;
    }

    public String connectionId() {
        return session.connectionId;
    }

    public String deviceId() {
        return deviceId;
    }

    /** Whether the user is active on this device; sent at once. null, the default, says nothing about the user. */
    public void setActive(Boolean active) {
        loop.run(() -> session.setActive(active));
    }

    /** Sends a new token over the open connection. */
    public CompletableFuture<Void> refreshToken(String token) {
        return request("refresh_token", Map.of("token", token), true).thenAccept(done -> tokens.replace(token));
    }

    /** Sends any command of the protocol; an idempotent one may be sent again after a lost connection. */
    public CompletableFuture<Map<String, Object>> request(String type, Map<String, Object> fields, boolean idempotent) {
        return onLoop(() -> session.requests.request(type, fields,
                idempotent ? Requests.Kind.IDEMPOTENT : Requests.Kind.PLAIN));
    }

    // Presence

    /** Completes with the last known presence of a user, or null. */
    public CompletableFuture<Presence> presence(String userId) {
        return onLoop(() -> CompletableFuture.completedFuture(session.presences.get(userId)));
    }

    /** Subscribes until unsubscribePresence(), also after reconnects. */
    public CompletableFuture<List<Presence>> subscribePresence(List<String> userIds) {
        return onLoop(() -> {
            List<String> added = session.presences.subscribe(userIds);
            return session.requestPresences("subscribe_presence", userIds, Requests.Kind.IDEMPOTENT).whenComplete((found, failure) -> {
                if (failure != null && !Loop.errorOf(failure).isRetryable()) session.presences.unsubscribe(added);
            });
        });
    }

    public CompletableFuture<Void> unsubscribePresence(List<String> userIds) {
        return onLoop(() -> {
            session.presences.unsubscribe(userIds);
            return session.requests.request("unsubscribe_presence", Fields.of("user_ids", userIds), Requests.Kind.IDEMPOTENT)
                    .thenAccept(done -> {});
        });
    }

    public CompletableFuture<List<Presence>> queryPresence(List<String> userIds) {
        return onLoop(() -> session.requestPresences("query_presence", userIds, Requests.Kind.IDEMPOTENT));
    }

    // Chats

    /** Opens a chat until closeChat(), also after reconnects. Its messages after `afterSequence` (or LATEST) are delivered. */
    public CompletableFuture<Map<String, Object>> openChat(String chatId, long afterSequence) {
        return onLoop(() -> {
            session.chats.open(chatId, afterSequence);
            return session.openChat(chatId, Requests.Kind.IDEMPOTENT).whenComplete((snapshot, failure) -> {
                if (failure != null && !Loop.errorOf(failure).isRetryable()) session.chats.close(chatId);
            });
        });
    }

    public CompletableFuture<Void> closeChat(String chatId) {
        return onLoop(() -> {
            session.chats.close(chatId);
            return session.requests.request("close_chat", Fields.of("chat_id", chatId), Requests.Kind.IDEMPOTENT)
                    .thenAccept(done -> {});
        });
    }

    /** Completes with the acknowledgement; repeats the message over as many connections as needed. */
    public CompletableFuture<MessageAck> sendMessage(String chatId, String body) {
        return sendMessage(chatId, body, UUID.randomUUID().toString());
    }

    public CompletableFuture<MessageAck> sendMessage(String chatId, String body, String clientMessageId) {
        return onLoop(() -> session.outbox.add(chatId, clientMessageId, body));
    }

    /** Fetches missed messages of a chat for the listener. Completes with the last sequence. */
    public CompletableFuture<Long> sync(String chatId) {
        return onLoop(() -> session.chats.sync(chatId));
    }

    /** Reports that the user types or has stopped. Completes with false if not connected; it is not kept. */
    public CompletableFuture<Boolean> typing(String chatId, boolean isTyping) {
        return sendNow(Fields.of("type", isTyping ? "typing_start" : "typing_stop", "chat_id", chatId));
    }

    /** Moves the user's read mark: others who have the chat open get a receipt. Completes with false if not connected. */
    public CompletableFuture<Boolean> ack(String chatId, long sequence) {
        return sendNow(Fields.of("type", "ack", "chat_id", chatId, "sequence", sequence));
    }

    /** Sends an event of the application to its server; completes with the data of the acknowledgement. */
    public CompletableFuture<Object> sendEvent(String name, Object data) {
        return request("event", Fields.of("name", name, "data", data), false).thenApply(reply -> reply.get("data"));
    }

    // Calls

    /** Rings a contact; completes with the call's id. */
    public CompletableFuture<String> requestCall(String to) {
        return request("call_request", Map.of("to", to), false).thenApply(reply -> Fields.text(reply, "call_id"));
    }

    public CompletableFuture<Void> acceptCall(String callId) {
        return request("call_accept", Map.of("call_id", callId), false).thenAccept(done -> {});
    }

    public CompletableFuture<Void> rejectCall(String callId) {
        return request("call_reject", Map.of("call_id", callId), false).thenAccept(done -> {});
    }

    public CompletableFuture<Void> endCall(String callId) {
        return request("call_end", Map.of("call_id", callId), false).thenAccept(done -> {});
    }

    /** Sends an offer, an answer or a candidate to the other side. Completes with false if not connected. */
    public CompletableFuture<Boolean> signal(String callId, Object data) {
        return sendNow(Fields.of("type", "call_signal", "call_id", callId, "data", data));
    }

    // Over HTTP

    /** Contacts, chats, history, settings and the call history. */
    public People people() {
        return new People((method, target, body) ->
                tokens.current().thenCompose(token -> api.call(token, method, target, body)));
    }

    private CompletableFuture<Boolean> sendNow(Map<String, Object> frame) {
        return onLoop(() -> CompletableFuture.completedFuture(
                session.link.state() == State.READY && session.link.send(Json.write(frame))));
    }

    private <T> CompletableFuture<T> onLoop(Supplier<CompletableFuture<T>> work) {
        CompletableFuture<T> result = new CompletableFuture<>();
        loop.run(() -> {
            try {
                work.get().whenComplete((value, failure) -> {
                    if (failure == null) result.complete(value);
                    else result.completeExceptionally(Loop.errorOf(failure));
                });
            } catch (RuntimeException failure) {
                result.completeExceptionally(failure);
            }
        });
        return result;
    }
}
