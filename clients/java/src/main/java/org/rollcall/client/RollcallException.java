package org.rollcall.client;

import java.util.Map;
import java.util.Set;

/**
 * What the server refused, or the client could not do. The server's codes are passed on unchanged. The client adds four
 * of its own: TIMEOUT (no reply within the time limit; the request may have taken effect), DISCONNECTED (the connection
 * was lost before the reply; the request may have taken effect), QUEUE_FULL (a limit of this client was reached; nothing was
 * sent) and CLOSED (close() was called, or the server does not allow reconnecting).
 */
public final class RollcallException extends RuntimeException {
    private static final long serialVersionUID = 1;
    private static final Set<String> RETRYABLE =
            Set.of("RATE_LIMITED", "SERVER_BUSY", "SERVICE_UNAVAILABLE", "TIMEOUT", "QUEUE_FULL");

    private final String code;
    private final double retryAfterSeconds;
    private final int status;

    public RollcallException(String code, String message) {
        this(code, message, 0, 0);
    }

    RollcallException(String code, String message, double retryAfterSeconds, int status) {
        super(code + ": " + message);
        this.code = code;
        this.retryAfterSeconds = retryAfterSeconds;
        this.status = status;
    }

    /** Makes the error for an `error` message, or the `error` of an HTTP answer. */
    static RollcallException of(Map<String, Object> error, int status) {
        Object seconds = error.getOrDefault("retry_after_seconds", error.get("grace_period_seconds"));
        return new RollcallException(String.valueOf(error.getOrDefault("code", "INVALID_MESSAGE")),
                String.valueOf(error.getOrDefault("message", "refused")),
                seconds instanceof Number ? ((Number) seconds).doubleValue() : 0, status);
    }

    public String code() {
        return code;
    }

    /** Whether the same request may succeed a little later. */
    public boolean isRetryable() {
        return RETRYABLE.contains(code);
    }

    /** How long the server asks to wait, or 0. */
    public double retryAfterSeconds() {
        return retryAfterSeconds;
    }

    /** The HTTP status of a REST answer, or 0. */
    public int status() {
        return status;
    }
}
