package org.rollcall.client;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.function.Function;

/**
 * Messages that the server has not acknowledged yet. Until it has acknowledged a message or refused it for good, the
 * message is sent again with the same client_message_id, after a lost connection, a missing reply and every temporary error;
 * the server recognises the repetition. One message per chat is in flight, so that the next cannot overtake a retry.
 *
 * The server limits a user's messages in all chats together. After RATE_LIMITED the chats take turns, each after the time
 * that the server names. Such a refusal does not count as a failed attempt. Of the loop's thread.
 */
final class Outbox {
    /** Unacknowledged messages in all chats together. Beyond it: QUEUE_FULL. */
    static final int SIZE_MAX = 100;
    /** Attempts before a message fails; lost connections do not count. */
    static final int ATTEMPTS_MAX = 10;

    static final class Entry {
        final String chatId;
        final String clientMessageId;
        final String body;
        final CompletableFuture<MessageAck> ack = new CompletableFuture<>();
        int attempts;

        Entry(String chatId, String clientMessageId, String body) {
            this.chatId = chatId;
            this.clientMessageId = clientMessageId;
            this.body = body;
        }
    }

    private final Loop loop;
    private final Backoff backoff;
    private final Function<Entry, CompletableFuture<MessageAck>> send;
    private final BooleanSupplier isOpen;
    private final Map<String, Queue<Entry>> queues = new HashMap<>();
    private final Set<String> busy = new HashSet<>();
    private final Queue<String> turns = new ArrayDeque<>();
    private boolean isLimited;
    private boolean isTurnTaken;
    private int size;

    Outbox(Loop loop, Backoff backoff, Function<Entry, CompletableFuture<MessageAck>> send, BooleanSupplier isOpen) {
        this.loop = loop;
        this.backoff = backoff;
        this.send = send;
        this.isOpen = isOpen;
    }

    CompletableFuture<MessageAck> add(String chatId, String clientMessageId, String body) {
        if (size >= SIZE_MAX)
            return CompletableFuture.failedFuture(new RollcallException("QUEUE_FULL", SIZE_MAX + " messages are unacknowledged"));
        Entry entry = new Entry(chatId, clientMessageId, body);
        queues.computeIfAbsent(chatId, chat -> new ArrayDeque<>()).add(entry);
        size += 1;
        drain(chatId);
        return entry.ack;
    }

    /** Resumes after a reconnect. */
    void flush() {
        for (String chatId : new ArrayList<>(queues.keySet())) drain(chatId);
    }

    void failAll(RollcallException error) {
        List<Entry> entries = new ArrayList<>();
        queues.values().forEach(entries::addAll);
        queues.clear();
        busy.clear();
        turns.clear();
        size = 0;
        isLimited = false;
        isTurnTaken = false;
        for (Entry entry : entries) entry.ack.completeExceptionally(error);
    }

    private void drain(String chatId) {
        Queue<Entry> queue = queues.get(chatId);
        if (queue == null || busy.contains(chatId) || !isOpen.getAsBoolean()) return;
        if (queue.isEmpty()) {
            queues.remove(chatId);
        } else if (isLimited && isTurnTaken) {
            if (!turns.contains(chatId)) turns.add(chatId);
        } else {
            attempt(queue, queue.peek(), isLimited);
        }
    }

    private void attempt(Queue<Entry> queue, Entry entry, boolean inTurn) {
        busy.add(entry.chatId);
        isTurnTaken |= inTurn;
        send.apply(entry).whenComplete((ack, failure) -> loop.run(() -> {
            if (queues.get(entry.chatId) != queue) return; // the client was closed
            if (failure == null) {
                remove(queue);
                entry.ack.complete(ack);
                next(entry.chatId, inTurn);
            } else {
                onRefused(queue, entry, Loop.errorOf(failure), inTurn);
            }
        }));
    }

    private void onRefused(Queue<Entry> queue, Entry entry, RollcallException error, boolean inTurn) {
        if (error.code().equals("DISCONNECTED")) {
            next(entry.chatId, inTurn);
            return;
        }
        if (error.code().equals("RATE_LIMITED") && error.retryAfterSeconds() > 0) isLimited = true;
        else entry.attempts += 1;
        if (error.isRetryable() && entry.attempts < ATTEMPTS_MAX) {
            loop.after(backoff.retryMs(error, entry.attempts - 1), () -> {
                if (queues.get(entry.chatId) == queue) next(entry.chatId, inTurn);
            });
            return;
        }
        remove(queue);
        entry.ack.completeExceptionally(error);
        next(entry.chatId, inTurn);
    }

    private void remove(Queue<Entry> queue) {
        queue.remove();
        size -= 1;
    }

    /** Goes on with the chat, or with those that wait for their turns. */
    private void next(String chatId, boolean inTurn) {
        busy.remove(chatId);
        if (inTurn) {
            isTurnTaken = false;
            turns.add(chatId); // behind the others
            isLimited = turns.size() > 1;
            List<String> waiting = new ArrayList<>(turns);
            turns.clear();
            waiting.forEach(this::drain);
        } else {
            drain(chatId);
        }
    }
}
