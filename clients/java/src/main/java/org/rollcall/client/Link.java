package org.rollcall.client;

import java.net.URI;
import java.util.Map;

/**
 * The connection that is replaced when it is lost: one WebSocket at a time.
 *
 *   DISCONNECTED ──connect()──► CONNECTING ──connection_established──► SYNCING ──markReady()──► READY
 *                                   │ failed                              │ connection_closing    │
 *   BACKOFF ◄───────────────────────┴──────── lost ◄──────────────────── CLOSING ◄───────────────┘
 *      └── the delay is over, or connect() ──► CONNECTING
 *   any ── close(), or the server does not allow reconnecting ──► DISCONNECTED, final
 *
 * The delays start at 1 s again after READY has lasted for a while, so that the client does not connect every second to a
 * server that accepts connections and closes them. A refused token (401, 4001, `token_expired`) is replaced once per
 * outage; if the fresh one is refused too, the client stops. Of the loop's thread.
 */
final class Link {
    static final long HANDSHAKE_TIMEOUT_MS = 10_000;
    /** A draining server closes its connections one by one. */
    static final long CLOSING_TIMEOUT_MS = 60_000;
    static final long STABLE_AFTER_MS = 10_000;
    private static final int CLOSE_TOO_LARGE = 1009;
    private static final int CLOSE_TOKEN = 4001;
    private static final int UNAUTHORIZED = 401;

    /** What the link tells its owner. */
    interface Events {
        void onState(StateChange change);

        void onEstablished(Map<String, Object> message);

        void onMessage(Map<String, Object> message);

        void onError(RollcallException error);

        void onTooLarge();
    }

    private final Loop loop;
    private final Transport transport;
    private final URI address;
    private final TokenSource tokens;
    private final Backoff backoff;
    private final Events events;
    private volatile State state = State.DISCONNECTED; // read by any thread
    private Transport.Socket socket;
    private Map<String, Object> closing = Map.of();
    private long closingSinceMs;
    private int attempts;
    private boolean isTokenReplaced;
    private long generation;
    private Runnable cancelTimer = () -> {};

    Link(Loop loop, Transport transport, URI address, TokenSource tokens, Backoff backoff, Events events) {
        this.loop = loop;
        this.transport = transport;
        this.address = address;
        this.tokens = tokens;
        this.backoff = backoff;
        this.events = events;
    }

    State state() {
        return state;
    }

    /** Connects, or ends a back-off early. */
    void connect() {
        if (state == State.DISCONNECTED || state == State.BACKOFF) attempt();
    }

    /** Disconnects until connect() is called again. */
    void close(RollcallException error) {
        Transport.Socket open = detach();
        if (open != null) open.close();
        if (state != State.DISCONNECTED) stop(error);
    }

    /** Ends the connection because it is dead. */
    void drop(String reason) {
        if (state != State.DISCONNECTED && state != State.BACKOFF) onLost(0, reason, false, null);
    }

    void markReady() {
        isTokenReplaced = false;
        cancelTimer = loop.after(STABLE_AFTER_MS, () -> attempts = 0);
        setState(State.READY, null, 0, 0, null);
    }

    boolean send(String text) {
        if (socket == null) return false;
        socket.send(text);
        return true;
    }

    /** Every change of state goes through here. */
    private void setState(State next, String reason, int closeCode, long delayMs, RollcallException error) {
        State previous = state;
        state = next;
        events.onState(new StateChange(next, previous, reason, closeCode, delayMs, error));
    }

    private void attempt() {
        long attempt = ++generation;
        cancelTimer.run();
        closing = Map.of();
        setState(State.CONNECTING, null, 0, 0, null);
        if (attempt != generation) return; // a listener called close()
        cancelTimer = loop.after(HANDSHAKE_TIMEOUT_MS, () -> drop("handshake_timeout"));
        tokens.current().whenComplete((token, failure) -> loop.run(() -> {
            if (attempt != generation) return;
            if (failure == null) transport.open(address, token, new Socket(attempt));
            else onNoToken(Loop.errorOf(failure));
        }));
    }

    /** If the source refuses a token, the client stops; any other failure is retried. */
    private void onNoToken(RollcallException error) {
        if (error.code().equals("UNAUTHENTICATED")) {
            detach();
            stop(error);
        } else {
            events.onError(error);
            onLost(0, "no_token", false, null);
        }
    }

    /** Brings what happens on a socket to the loop, unless the socket was replaced. */
    private final class Socket implements Transport.SocketListener {
        private final long attempt;

        Socket(long attempt) {
            this.attempt = attempt;
        }

        private void run(Runnable work) {
            loop.run(() -> {
                if (attempt == generation) work.run();
            });
        }

        @Override
        public void onOpen(Transport.Socket opened) {
            loop.run(() -> {
                if (attempt == generation) socket = opened;
                else opened.abort();
            });
        }

        @Override
        public void onText(String text) {
            run(() -> onMessage(text));
        }

        @Override
        public void onRefused(int status, String retryAfter) {
            run(() -> onLost(0, "HTTP " + status, status == UNAUTHORIZED, retryAfter));
        }

        @Override
        public void onClosed(int code, String reason) {
            run(() -> onLost(code, reason, false, null));
        }
    }

    private void onMessage(String text) {
        Map<String, Object> message;
        try {
            message = Fields.object(Json.parse(text));
        } catch (IllegalArgumentException notJson) {
            message = Map.of();
        }
        String type = Fields.text(message, "type");
        if (type == null) {
            events.onError(new RollcallException("INVALID_MESSAGE", "the server sent data that is not a message"));
        } else if (type.equals("connection_established") && state == State.CONNECTING) {
            cancelTimer.run();
            setState(State.SYNCING, null, 0, 0, null);
            events.onEstablished(message);
        } else {
            if (type.equals("connection_closing")) onClosing(message);
            events.onMessage(message);
        }
    }

    private void onClosing(Map<String, Object> message) {
        closing = message;
        closingSinceMs = System.nanoTime() / 1_000_000;
        if (state != State.SYNCING && state != State.READY) return;
        cancelTimer.run();
        cancelTimer = loop.after(CLOSING_TIMEOUT_MS, () -> drop("closing_timeout"));
        setState(State.CLOSING, Fields.text(message, "reason"), 0, 0, null);
    }

    /** Every end of a connection or of an attempt goes through here. */
    private void onLost(int code, String reason, boolean isRefused, String retryAfter) {
        Transport.Socket lost = detach();
        if (lost != null) lost.abort();
        if (code == CLOSE_TOO_LARGE) events.onTooLarge();
        RollcallException finalError = finalError(code, isRefused);
        if (finalError != null) stop(finalError);
        else backOff(code, closing.isEmpty() ? reason : Fields.text(closing, "reason"), isRefused, retryAfter);
    }

    /** Returns why the client must stop, or null. Replaces the token where that may help. */
    private RollcallException finalError(int code, boolean isRefused) {
        if (isRefused || code == CLOSE_TOKEN || "token_expired".equals(closing.get("reason"))) {
            if (isTokenReplaced || !tokens.discard()) return new RollcallException("UNAUTHENTICATED", "the server refused the token");
            isTokenReplaced = true;
        } else if (Boolean.FALSE.equals(closing.get("reconnect_allowed"))) {
            return new RollcallException("CLOSED", "the server closed the connection for good: " + closing.get("reason"));
        }
        return null;
    }

    private void backOff(int code, String reason, boolean isRefused, String retryAfter) {
        long delayMs = delayMs(isRefused, retryAfter);
        long waiting = generation;
        cancelTimer = loop.after(delayMs, () -> {
            if (waiting == generation && state == State.BACKOFF) attempt();
        });
        setState(State.BACKOFF, reason, code, delayMs, null);
    }

    /** `reconnect_after_ms` includes the time until the server closed. */
    private long delayMs(boolean isRefused, String retryAfter) {
        long askedMs = Fields.number(closing, "reconnect_after_ms", -1);
        if (askedMs >= 0) {
            long passedMs = System.nanoTime() / 1_000_000 - closingSinceMs;
            return Math.max(0, Math.min(askedMs, Backoff.RECONNECT_AFTER_MAX_MS) - passedMs);
        }
        attempts += 1;
        if (isRefused && attempts == 1) return 0; // with the fresh token at once
        long retryMs = retryAfter != null && retryAfter.matches("\\d{1,6}") ? Long.parseLong(retryAfter) * 1000 : 0;
        return Math.max(backoff.delayMs(attempts - 1), Math.min(retryMs, Backoff.RECONNECT_AFTER_MAX_MS));
    }

    private void stop(RollcallException error) {
        attempts = 0;
        isTokenReplaced = false;
        cancelTimer.run();
        setState(State.DISCONNECTED, error.code(), 0, 0, error);
    }

    /** What still comes from the old socket is ignored from now on. */
    private Transport.Socket detach() {
        generation += 1;
        cancelTimer.run();
        Transport.Socket old = socket;
        socket = null;
        return old;
    }
}
