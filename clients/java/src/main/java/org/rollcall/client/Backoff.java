package org.rollcall.client;

import java.util.Random;

/**
 * How long to wait before the next attempt: 1, 2, 4, 8, then always 16 s, each ±20 %, so that clients that lost their
 * connections together do not reconnect together.
 */
final class Backoff {
    static final long FIRST_MS = 1000;
    static final int DOUBLINGS_MAX = 4;
    static final double JITTER = 0.2;
    /** The server spreads reconnections itself; this bounds a wrong value. */
    static final long RECONNECT_AFTER_MAX_MS = 600_000;

    private final Random random;

    Backoff(Random random) {
        this.random = random;
    }

    /** `attempt` counts from 0. */
    long delayMs(int attempt) {
        long base = FIRST_MS << Math.min(Math.max(attempt, 0), DOUBLINGS_MAX);
        return Math.round(base * (1 + JITTER * (2 * random.nextDouble() - 1)));
    }

    /** The delay that the server asks for takes precedence. */
    long retryMs(RollcallException error, int attempt) {
        if (error.retryAfterSeconds() > 0)
            return Math.min(Math.round(error.retryAfterSeconds() * 1000), RECONNECT_AFTER_MAX_MS);
        return delayMs(attempt);
    }
}
