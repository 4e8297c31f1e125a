/**
 * How long to wait before the next attempt: 1, 2, 4, 8, then always 16 s, each ±20 %, so that
 * clients that lost their connections together do not reconnect together.
 */
export const BACKOFF_FIRST_MS = 1000;
export const BACKOFF_MAX_MS = 16000;
export const BACKOFF_JITTER = 0.2;

/** The server spreads reconnections itself; this bounds a wrong value. */
export const RECONNECT_AFTER_MAX_MS = 600000;

/** `attempt` counts from 0; `random` returns a number in [0, 1). */
export function backoffDelayMs(attempt, random) {
  const baseMs = Math.min(BACKOFF_FIRST_MS * 2 ** attempt, BACKOFF_MAX_MS);
  return Math.round(baseMs * (1 + BACKOFF_JITTER * (2 * random() - 1)));
}

/** The delay that the server asks for takes precedence over the back-off. */
export function retryDelayMs(error, attempt, random) {
  if (error.retryAfterSeconds > 0)
    return Math.min(error.retryAfterSeconds * 1000, RECONNECT_AFTER_MAX_MS);
  return backoffDelayMs(attempt, random);
}
