package org.rollcall.client;

/**
 * A change of state. `delayMs` on BACKOFF; `error` where the client has given up for good, null otherwise.
 */
public record StateChange(State state, State previous, String reason, int closeCode, long delayMs, RollcallException error) {
    /** No further attempt will be made. */
    public boolean isFinal() {
        return error != null;
    }
}
