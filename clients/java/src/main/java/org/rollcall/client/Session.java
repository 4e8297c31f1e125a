package org.rollcall.client;

import java.net.URI;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * The life of a connection, from `connection_established` to its end: heartbeats, token renewal, restoring subscriptions
 * and chats, and handling messages. Restoring runs in SYNCING: first the presence subscriptions, then every open chat and
 * every chat with a gap. READY follows when the server has answered all of it. Of the loop's thread.
 */
final class Session implements Link.Events {
    /** Chats restored at the same time after a reconnect; more would reach the rate limit. */
    static final int RESTORE_PARALLEL = 4;
    static final int RESTORE_ATTEMPTS_MAX = 10;

    final Link link;
    final Requests requests;
    final Outbox outbox;
    final Chats chats;
    final PresenceCache presences = new PresenceCache();
    volatile String userId;
    volatile String connectionId;
    private final Loop loop;
    private final TokenSource tokens;
    private final Backoff backoff;
    private final Listener listener;
    private final List<CompletableFuture<Void>> waiters = new ArrayList<>();
    private Boolean isActive;
    private long generation;
    /** Of those that wait after RATE_LIMITED. */
    private CompletableFuture<Void> turn = CompletableFuture.completedFuture(null);
    private long intervalMs;
    private long expiryMs;
    private long unansweredSinceMs = -1;
    private Runnable cancelBeat = () -> {};
    private Runnable cancelRefresh = () -> {};

    Session(Loop loop, Transport transport, URI address, TokenSource tokens, Backoff backoff, Listener listener) {
        this.loop = loop;
        this.tokens = tokens;
        this.backoff = backoff;
        this.listener = listener;
        link = new Link(loop, transport, address, tokens, backoff, this);
        requests = new Requests(loop, link::send, this::isOpen);
        outbox = new Outbox(loop, backoff, this::sendEntry, () -> link.state() == State.READY);
        chats = new Chats((chatId, after) -> requests.request("sync_request",
                Fields.of("chat_id", chatId, "after_sequence", after), Requests.Kind.EARLY),
                message -> guard(() -> listener.onMessage(message)), this::onGap);
    }

    CompletableFuture<Void> connect() {
        if (link.state() == State.READY) return CompletableFuture.completedFuture(null);
        CompletableFuture<Void> ready = new CompletableFuture<>();
        waiters.add(ready);
        link.connect();
        return ready;
    }

    void close() {
        RollcallException error = new RollcallException("CLOSED", "the client was closed");
        if (link.state() == State.DISCONNECTED) failAll(error);
        link.close(error);
    }

    void setActive(Boolean active) {
        isActive = active;
        if (intervalMs > 0) beat();
    }

    CompletableFuture<List<Presence>> requestPresences(String type, List<String> userIds, Requests.Kind kind) {
        return requests.request(type, Fields.of("user_ids", userIds), kind).thenApply(reply -> {
            List<Presence> found = new ArrayList<>();
            for (Map<String, Object> each : Fields.objects(reply, "presences")) found.add(Presence.of(each));
            return found;
        });
    }

    CompletableFuture<Map<String, Object>> openChat(String chatId, Requests.Kind kind) {
        return requests.request("open_chat", Fields.of("chat_id", chatId), kind).thenApply(snapshot -> {
            long latest = Fields.number(snapshot, "latest_sequence", 0);
            chats.begin(chatId, latest);
            if (chats.lastSequence(chatId) < latest && kind != Requests.Kind.EARLY) onGap(chatId);
            return snapshot;
        });
    }

    // The life of a connection

    @Override
    public void onState(StateChange change) {
        if (change.state() == State.BACKOFF || change.state() == State.DISCONNECTED) endConnection();
        if (change.isFinal()) failAll(change.error());
        guard(() -> listener.onState(change));
    }

    @Override
    public void onEstablished(Map<String, Object> message) {
        turn = CompletableFuture.completedFuture(null); // what waits belongs to the connection before
        userId = Fields.text(message, "user_id");
        connectionId = Fields.text(message, "conn_id");
        intervalMs = Math.max(1, Math.round(Fields.decimal(message, "heartbeat_interval_seconds", 5) * 1000));
        expiryMs = Math.round(Fields.decimal(message, "expiry_window_seconds", 15) * 1000);
        unansweredSinceMs = -1;
        beat();
        scheduleRefresh(clockSkewMs(Fields.text(message, "server_time")), 0);
        guard(() -> listener.onPush("connection_established", message));
        restoreAll();
    }

    @Override
    public void onError(RollcallException error) {
        guard(() -> listener.onError(error));
    }

    @Override
    public void onTooLarge() {
        requests.tooLarge();
    }

    private boolean isOpen(boolean early) {
        return link.state() == State.READY || early && link.state() == State.SYNCING;
    }

    /** The server's clock minus ours. */
    private static long clockSkewMs(String serverTime) {
        try {
            return Instant.parse(serverTime).toEpochMilli() - System.currentTimeMillis();
        } catch (RuntimeException unreadable) {
            return 0;
        }
    }

    private void endConnection() {
        generation += 1;
        intervalMs = 0;
        cancelBeat.run();
        cancelRefresh.run();
        requests.connectionLost();
    }

    private void failAll(RollcallException error) {
        requests.failAll(error);
        outbox.failAll(error);
        List<CompletableFuture<Void>> waiting = new ArrayList<>(waiters);
        waiters.clear();
        for (CompletableFuture<Void> waiter : waiting) waiter.completeExceptionally(error);
    }

    /** Sends a heartbeat. The connection is dead when the first unanswered one is older than the expiry window. */
    private void beat() {
        cancelBeat.run();
        long nowMs = System.nanoTime() / 1_000_000;
        if (unansweredSinceMs < 0) unansweredSinceMs = nowMs;
        if (nowMs - unansweredSinceMs >= expiryMs) {
            link.drop("heartbeat_timeout");
            return;
        }
        link.send(Json.write(Fields.of("type", "heartbeat", "active", isActive)));
        cancelBeat = loop.after(Math.min(intervalMs, unansweredSinceMs + expiryMs - nowMs), this::beat);
    }

    /** If no refresh succeeds until the token expires, the server's close leads to a new handshake. */
    private void scheduleRefresh(long skewMs, int failures) {
        long waitMs = tokens.refreshWaitMs(skewMs);
        if (waitMs == TokenSource.NEVER) return;
        long connection = generation;
        cancelRefresh = loop.after(failures == 0 ? waitMs : backoff.delayMs(failures - 1), () ->
                tokens.fetch().whenComplete((token, failure) -> loop.run(() -> {
                    if (connection == generation) onFreshToken(token, failure, skewMs, failures);
                })));
    }

    private void onFreshToken(String token, Throwable failure, long skewMs, int failures) {
        if (failure != null && Loop.errorOf(failure).code().equals("UNAUTHENTICATED")) {
            link.close(Loop.errorOf(failure)); // the user is signed out
            return;
        }
        long connection = generation;
        CompletableFuture<?> sent = failure != null ? CompletableFuture.failedFuture(failure)
                : requests.request("refresh_token", Fields.of("token", token), Requests.Kind.EARLY);
        sent.whenComplete((done, refused) -> {
            if (connection != generation) return;
            if (refused != null) onError(Loop.errorOf(refused));
            scheduleRefresh(skewMs, refused == null ? 0 : failures + 1);
        });
    }

    /** Subscribes to and opens again what the application has asked for. */
    private void restoreAll() {
        long connection = generation;
        List<String> users = presences.subscribed();
        CompletableFuture<Void> subscribed = users.isEmpty() ? CompletableFuture.completedFuture(null)
                : restore(null, () -> requestPresences("subscribe_presence", users, Requests.Kind.EARLY), 0);
        subscribed.thenCompose(done -> restoreChats(new ArrayDeque<>(chats.toRestore()))).thenRun(() -> {
            if (connection != generation || link.state() != State.SYNCING) return;
            link.markReady();
            requests.flush();
            outbox.flush();
            List<CompletableFuture<Void>> waiting = new ArrayList<>(waiters);
            waiters.clear();
            for (CompletableFuture<Void> waiter : waiting) waiter.complete(null);
        });
    }

    private CompletableFuture<Void> restoreChats(Queue<String> queue) {
        CompletableFuture<?>[] workers = new CompletableFuture<?>[RESTORE_PARALLEL];
        for (int i = 0; i < RESTORE_PARALLEL; i += 1) workers[i] = restoreNext(queue);
        return CompletableFuture.allOf(workers);
    }

    private CompletableFuture<Void> restoreNext(Queue<String> queue) {
        String chatId = queue.poll();
        if (chatId == null) return CompletableFuture.completedFuture(null);
        return restoreChat(chatId).thenCompose(done -> restoreNext(queue));
    }

    /** Two steps, so that a retry repeats only the request that was refused. */
    private CompletableFuture<Void> restoreChat(String chatId) {
        if (!chats.isOpen(chatId)) return restore(chatId, () -> chats.sync(chatId), 0);
        return restore(chatId, () -> openChat(chatId, Requests.Kind.EARLY), 0).thenCompose(done ->
                chats.isOpen(chatId) ? restore(chatId, () -> chats.sync(chatId), 0) // it is closed if it was refused for good
                        : CompletableFuture.completedFuture(null));
    }

    /**
     * Restores the subscriptions or a part of one chat, and retries after temporary errors. The caller waits while the server
     * says RATE_LIMITED; other retries run in the background, so that a part of the server that is down does not delay the
     * rest. After a lost connection, the next one restores instead.
     */
    private CompletableFuture<Void> restore(String chatId, Supplier<CompletableFuture<?>> work, int attempt) {
        long connection = generation;
        return pace(work).thenAccept(error -> {
            if (error == null || connection != generation || error.code().equals("DISCONNECTED")) return;
            if (!error.isRetryable() || isLimited(error) || attempt + 1 >= RESTORE_ATTEMPTS_MAX) {
                onRestoreFailed(chatId, error);
                return;
            }
            loop.pause(backoff.retryMs(error, attempt)).thenRun(() -> {
                if (connection == generation) restore(chatId, work, attempt + 1);
            });
        });
    }

    private static CompletableFuture<RollcallException> errorOf(Supplier<CompletableFuture<?>> work) {
        return work.get().handle((done, failure) -> failure == null ? null : Loop.errorOf(failure));
    }

    private static boolean isLimited(RollcallException error) {
        return error != null && error.code().equals("RATE_LIMITED");
    }

    /**
     * Completes with null or an error. While the server says RATE_LIMITED, it waits as long as the server says and tries again;
     * one at a time, so that the chats do not compete for what the server allows.
     */
    private CompletableFuture<RollcallException> pace(Supplier<CompletableFuture<?>> work) {
        return errorOf(work).thenCompose(error -> {
            if (!isLimited(error)) return CompletableFuture.completedFuture(error);
            CompletableFuture<RollcallException> mine = turn.thenCompose(before -> retryLimited(error, work, generation, 1));
            turn = mine.handle((last, failure) -> null);
            return mine;
        });
    }

    private CompletableFuture<RollcallException> retryLimited(RollcallException error, Supplier<CompletableFuture<?>> work,
            long connection, int attempt) {
        if (!isLimited(error) || attempt >= RESTORE_ATTEMPTS_MAX || connection != generation)
            return CompletableFuture.completedFuture(error);
        return loop.pause(backoff.retryMs(error, attempt - 1)).thenCompose(over ->
                connection != generation ? CompletableFuture.completedFuture(error)
                        : errorOf(work).thenCompose(next -> retryLimited(next, work, connection, attempt + 1)));
    }

    private void onRestoreFailed(String chatId, RollcallException error) {
        if (chatId != null && !error.isRetryable()) {
            chats.close(chatId);
            chats.abandonGap(chatId);
        }
        onError(error);
    }

    private void onGap(String chatId) {
        restore(chatId, () -> chats.sync(chatId), 0);
    }

    // Messages from the server

    @Override
    public void onMessage(Map<String, Object> message) {
        unansweredSinceMs = -1;
        String type = Fields.text(message, "type");
        apply(type, message);
        if (requests.settle(message)) return;
        switch (type) {
            case "error": onError(RollcallException.of(message, 0)); break;
            case "typing_changed":
                guard(() -> listener.onTyping(Fields.text(message, "chat_id"), Fields.text(message, "user_id"),
                        Fields.flag(message, "typing")));
                break;
            case "heartbeat_ack": case "ok": case "message": case "presence_changed": case "presence_snapshot":
            case "chat_snapshot": break;
            default: guard(() -> listener.onPush(type, message));
        }
    }

    /** Updates the caches, whether the message is a reply or a push. */
    private void apply(String type, Map<String, Object> message) {
        switch (type) {
            case "presence_changed": applyPresence(message); break;
            case "presence_snapshot": Fields.objects(message, "presences").forEach(this::applyPresence); break;
            case "chat_snapshot":
                Fields.objects(message, "presences").forEach(this::applyPresence);
                guard(() -> listener.onChat(message));
                // One that nobody asked for may show messages that this device has not got.
                if (!message.containsKey("id"))
                    chats.expect(Fields.text(message, "chat_id"), Fields.number(message, "latest_sequence", 0));
                break;
            case "message": chats.offer(Message.of(message)); break;
            case "chat_closed": chats.close(Fields.text(message, "chat_id")); break;
            case "message_deleted":
                chats.onDeleted(Fields.text(message, "chat_id"), Fields.number(message, "sequence", 0));
                break;
            case "connection_closing": chats.markMissed(Fields.object(message.get("sync_from_sequence"))); break;
            case "sync_required": restoreChats(new ArrayDeque<>(chats.tracked())); break;
            default: break;
        }
    }

    private void applyPresence(Map<String, Object> fields) {
        Presence presence = Presence.of(fields);
        if (presences.apply(presence)) guard(() -> listener.onPresence(presence));
    }

    /**
     * The server does not push a message back to its sender, so the acknowledgement takes its place, unless the id was used
     * before with another body.
     */
    private CompletableFuture<MessageAck> sendEntry(Outbox.Entry entry) {
        Map<String, Object> fields =
                Fields.of("chat_id", entry.chatId, "client_message_id", entry.clientMessageId, "body", entry.body);
        return requests.request("send_message", fields, Requests.Kind.PLAIN).thenApply(reply -> {
            MessageAck ack = MessageAck.of(reply);
            if (Fields.flag(reply, "body_differs")) {
                chats.expect(entry.chatId, ack.sequence());
            } else {
                fields.putAll(Fields.of("message_id", ack.messageId(), "sequence", ack.sequence(), "sender_id", userId,
                        "sent_at", Instant.now().toString()));
                chats.offer(Message.of(fields));
            }
            return ack;
        });
    }

    /** A listener that fails must not harm the connection; its thread reports it as any uncaught failure. */
    private void guard(Runnable call) {
        try {
            call.run();
        } catch (RuntimeException failure) {
            Thread thread = Thread.currentThread();
            thread.getUncaughtExceptionHandler().uncaughtException(thread, failure);
        }
    }
}
