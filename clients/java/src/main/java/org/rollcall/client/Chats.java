package org.rollcall.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiFunction;
import java.util.function.Consumer;

/**
 * Delivers every message once, and in order within its chat. Sequences are dense per chat, so a gap means a missed message:
 * later messages are held until a sync has filled the gap. A chat that was neither opened nor synced starts with its first
 * message that arrives. Of the loop's thread.
 *
 *   offer(n)   n <= last: dropped as a duplicate      n == last + 1: delivered      n > last + 1: held, onGap requests a sync
 */
final class Chats {
    /** Beyond it, the oldest chat that is not open is dropped. */
    static final int TRACKED_MAX = 1000;
    /** Messages held per chat behind a gap. Beyond it they are dropped: the sync fetches them again. */
    static final int HELD_MAX = 500;
    static final long UNKNOWN = -1;

    private static final class Log {
        long last = UNKNOWN;
        final TreeMap<Long, Message> held = new TreeMap<>();
        boolean isOpen;
        boolean isMissed;
        CompletableFuture<Long> syncing;
    }

    private final Map<String, Log> logs = new LinkedHashMap<>();
    private final BiFunction<String, Long, CompletableFuture<Map<String, Object>>> fetchPage;
    private final Consumer<Message> deliver;
    private final Consumer<String> onGap;

    /** `fetchPage` completes on the loop's thread; `onGap` must make sure that sync() is called. */
    Chats(BiFunction<String, Long, CompletableFuture<Map<String, Object>>> fetchPage, Consumer<Message> deliver,
            Consumer<String> onGap) {
        this.fetchPage = fetchPage;
        this.deliver = deliver;
        this.onGap = onGap;
    }

    /** Marks a chat as open. Until begin() sets where it starts, its messages are held. */
    void open(String chatId, long afterSequence) {
        Log log = log(chatId);
        log.isOpen = true;
        if (afterSequence != UNKNOWN) log.last = afterSequence;
    }

    /** A chat opened for the first time without a sequence starts at the server's latest one. */
    void begin(String chatId, long latestSequence) {
        Log log = log(chatId);
        if (log.last == UNKNOWN)
            log.last = log.held.isEmpty() ? latestSequence : Math.min(latestSequence, log.held.firstKey() - 1);
        release(log);
    }

    void close(String chatId) {
        if (logs.containsKey(chatId)) logs.get(chatId).isOpen = false;
    }

    boolean isOpen(String chatId) {
        return logs.containsKey(chatId) && logs.get(chatId).isOpen;
    }

    long lastSequence(String chatId) {
        return logs.containsKey(chatId) ? logs.get(chatId).last : UNKNOWN;
    }

    /** The chats a new connection must restore: open ones, and those with a gap. */
    List<String> toRestore() {
        List<String> chats = new ArrayList<>();
        logs.forEach((chatId, log) -> {
            if (log.isOpen || !log.held.isEmpty() || log.isMissed) chats.add(chatId);
        });
        return chats;
    }

    List<String> tracked() {
        List<String> chats = new ArrayList<>();
        logs.forEach((chatId, log) -> {
            if (log.isOpen || log.last != UNKNOWN) chats.add(chatId);
        });
        return chats;
    }

    /** Takes `sync_from_sequence` of a closing connection: chats whose messages the server dropped. */
    void markMissed(Map<String, Object> syncAfter) {
        for (String chatId : syncAfter.keySet()) {
            Log log = log(chatId);
            log.isMissed = true;
            long sequence = Fields.number(syncAfter, chatId, UNKNOWN);
            if (log.last == UNKNOWN && sequence >= 0) log.last = sequence;
        }
    }

    void offer(Message message) {
        Log log = log(message.chatId());
        long sequence = message.sequence();
        if (log.last == UNKNOWN && !log.isOpen) log.last = sequence - 1;
        if (log.last != UNKNOWN && sequence <= log.last) return;
        if (log.held.size() < HELD_MAX || sequence == log.last + 1) log.held.put(sequence, message);
        if (log.last == UNKNOWN) return;
        release(log);
        if (!log.held.isEmpty() && log.syncing == null) onGap.accept(message.chatId());
    }

    /** A message was deleted: if it is held behind a gap, it is delivered without its body. */
    void onDeleted(String chatId, long sequence) {
        Log log = logs.get(chatId);
        if (log == null || !log.held.containsKey(sequence)) return;
        Map<String, Object> fields = new LinkedHashMap<>(log.held.get(sequence).fields());
        fields.remove("body");
        fields.put("deleted", true);
        log.held.put(sequence, Message.of(fields));
    }

    /** The server has a message with this sequence that only a sync can fetch. */
    void expect(String chatId, long sequence) {
        Log log = log(chatId);
        if (log.last == UNKNOWN && !log.isOpen) log.last = sequence - 1;
        if (log.last == UNKNOWN || sequence <= log.last) return;
        log.isMissed = true;
        if (log.syncing == null) onGap.accept(chatId);
    }

    /** Fetches pages until the server has no more. One sync per chat runs at a time. */
    CompletableFuture<Long> sync(String chatId) {
        Log log = log(chatId);
        if (log.syncing != null) return log.syncing;
        if (log.last == UNKNOWN) log.last = 0;
        CompletableFuture<Long> run = new CompletableFuture<>();
        log.syncing = run;
        fetchNext(chatId, log, run);
        return run;
    }

    /** Skips the gap of a chat whose sync was refused for good. */
    void abandonGap(String chatId) {
        Log log = logs.get(chatId);
        if (log == null) return;
        log.isMissed = false;
        if (log.held.isEmpty()) return;
        log.last = log.held.firstKey() - 1;
        release(log);
    }

    private void fetchNext(String chatId, Log log, CompletableFuture<Long> run) {
        long before = log.last;
        fetchPage.apply(chatId, before).whenComplete((page, failure) -> {
            RollcallException error = failure == null ? takePage(log, before, page) : Loop.errorOf(failure);
            boolean isDone = error == null && !Fields.flag(page, "has_more") && log.held.isEmpty();
            if (error == null && !isDone) {
                fetchNext(chatId, log, run);
                return;
            }
            log.syncing = null;
            if (error != null) {
                run.completeExceptionally(error);
            } else {
                log.isMissed = false;
                run.complete(log.last);
            }
        });
    }

    /** Returns why the sync must end, or null. */
    private RollcallException takePage(Log log, long before, Map<String, Object> page) {
        for (Map<String, Object> message : Fields.objects(page, "messages")) offer(Message.of(message));
        if (Fields.flag(page, "has_more"))
            return log.last == before ? new RollcallException("INVALID_MESSAGE", "the sync does not advance") : null;
        // If a complete sync left a gap, there are no messages in the gap.
        if (!log.held.isEmpty() && log.held.firstKey() <= Fields.number(page, "latest_sequence", 0) + 1) {
            log.last = log.held.firstKey() - 1;
            release(log);
        }
        if (!log.held.isEmpty() && log.last == before)
            return new RollcallException("SERVICE_UNAVAILABLE", "the sync lags behind");
        return null;
    }

    private void release(Log log) {
        log.held.headMap(log.last, true).clear();
        for (Message next = log.held.remove(log.last + 1); next != null; next = log.held.remove(log.last + 1)) {
            log.last = next.sequence();
            deliver.accept(next);
        }
    }

    private Log log(String chatId) {
        Log log = logs.get(chatId);
        if (log == null) {
            if (logs.size() >= TRACKED_MAX) dropOldest();
            log = new Log();
            logs.put(chatId, log);
        }
        return log;
    }

    private void dropOldest() {
        for (Map.Entry<String, Log> each : logs.entrySet()) {
            if (each.getValue().isOpen || each.getValue().syncing != null) continue;
            logs.remove(each.getKey());
            return;
        }
    }
}
