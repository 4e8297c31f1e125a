package org.rollcall.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Predicate;

/**
 * Requests and their replies, matched by `id`. Every request is settled exactly once. Without a connection a request waits
 * for the next one within its time limit. If the connection is lost before the reply, an idempotent request is sent again;
 * any other fails with DISCONNECTED, because the client cannot know whether it took effect. Of the loop's thread.
 */
final class Requests {
    /** Waiting and sent ones together. The server allows as many in flight. Beyond it: QUEUE_FULL. */
    static final int PENDING_MAX = 100;
    static final long TIMEOUT_MS = 10_000;

    enum Kind {
        PLAIN,
        /** May be sent twice. */
        IDEMPOTENT,
        /** Restores the present connection: is sent before READY, and fails with it. */
        EARLY
    }

    private static final class Entry {
        final String text;
        final Kind kind;
        final CompletableFuture<Map<String, Object>> reply = new CompletableFuture<>();
        Runnable cancelTimeout;
        boolean isSent;

        Entry(String text, Kind kind) {
            this.text = text;
            this.kind = kind;
        }
    }

    private final Loop loop;
    private final Consumer<String> send;
    private final Predicate<Boolean> isOpen;
    private final Map<String, Entry> pending = new LinkedHashMap<>();
    private long lastId;

    /** `isOpen(early)` tells whether `send` is possible now; early: before READY too. */
    Requests(Loop loop, Consumer<String> send, Predicate<Boolean> isOpen) {
        this.loop = loop;
        this.send = send;
        this.isOpen = isOpen;
    }

    CompletableFuture<Map<String, Object>> request(String type, Map<String, Object> fields, Kind kind) {
        if (pending.size() >= PENDING_MAX)
            return CompletableFuture.failedFuture(new RollcallException("QUEUE_FULL", PENDING_MAX + " requests are waiting"));
        if (kind == Kind.EARLY && !isOpen.test(true))
            return CompletableFuture.failedFuture(new RollcallException("DISCONNECTED", "there is no connection"));
        String id = String.valueOf(++lastId);
        Map<String, Object> frame = new LinkedHashMap<>(fields);
        frame.put("type", type);
        frame.put("id", id);
        Entry entry = new Entry(Json.write(frame), kind);
        entry.cancelTimeout = loop.after(TIMEOUT_MS, () ->
                fail(id, new RollcallException("TIMEOUT", "no reply to " + type + " within " + TIMEOUT_MS + " ms")));
        pending.put(id, entry);
        sendIfOpen(entry);
        return entry.reply;
    }

    /** Sends the requests that waited for a connection. */
    void flush() {
        for (Entry entry : new ArrayList<>(pending.values())) if (!entry.isSent) sendIfOpen(entry);
    }

    /** Settles the request that a message answers; returns false if there is none. */
    boolean settle(Map<String, Object> message) {
        String id = Fields.text(message, "id");
        if (id == null || !pending.containsKey(id)) return false;
        if ("error".equals(message.get("type"))) fail(id, RollcallException.of(message, 0));
        else take(id).reply.complete(message);
        return true;
    }

    /** Fails the request for which the server closed the connection: the largest, as it accepted all others. */
    void tooLarge() {
        String largest = null;
        for (Map.Entry<String, Entry> each : pending.entrySet())
            if (each.getValue().isSent && (largest == null || each.getValue().text.length() > pending.get(largest).text.length()))
                largest = each.getKey();
        if (largest != null) fail(largest, new RollcallException("MESSAGE_TOO_LARGE", "larger than the server accepts"));
    }

    void connectionLost() {
        for (String id : ids()) {
            Entry entry = pending.get(id);
            if (entry == null) continue;
            if (entry.kind == Kind.IDEMPOTENT) entry.isSent = false;
            else if (entry.isSent) fail(id, new RollcallException("DISCONNECTED", "the connection was lost before the reply"));
        }
    }

    void failAll(RollcallException error) {
        for (String id : ids()) if (pending.containsKey(id)) fail(id, error);
    }

    private List<String> ids() {
        return new ArrayList<>(pending.keySet());
    }

    private void sendIfOpen(Entry entry) {
        if (!isOpen.test(entry.kind == Kind.EARLY)) return;
        entry.isSent = true;
        send.accept(entry.text);
    }

    private void fail(String id, RollcallException error) {
        take(id).reply.completeExceptionally(error);
    }

    private Entry take(String id) {
        Entry entry = pending.remove(id);
        entry.cancelTimeout.run();
        return entry;
    }
}
