/**
 * What goes wrong, under one class, so that a caller can decide by `code` alone.
 *
 * The server's codes come through unchanged (INVALID_MESSAGE, RATE_LIMITED, …). The client adds
 * four of its own:
 *
 *   TIMEOUT        no reply within the time limit; the request may or may not have been carried out
 *   DISCONNECTED   the connection went away with the request on it; same doubt
 *   QUEUE_FULL     a bound of this client was reached; nothing was sent
 *   CLOSED         close() was called, or the server does not want this client back
 */

/** Codes after which the same request may succeed a little later. */
const RETRYABLE_CODES = new Set([
  'RATE_LIMITED',
  'SERVER_BUSY',
  'SERVICE_UNAVAILABLE',
  'TIMEOUT',
  'QUEUE_FULL',
]);

export class RollcallError extends Error {
  constructor(code, message, { retryAfterSeconds, clientMessageId, chatId, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RollcallError';
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
    this.clientMessageId = clientMessageId;
    this.chatId = chatId;
  }

  /** Turns the server's `error` message into what the caller catches. */
  static fromMessage(message) {
    return new RollcallError(message.code ?? 'INVALID_MESSAGE', message.message ?? 'refused', {
      retryAfterSeconds: message.retry_after_seconds ?? message.grace_period_seconds,
      clientMessageId: message.client_message_id,
      chatId: message.chat_id,
    });
  }

  get retryable() {
    return RETRYABLE_CODES.has(this.code);
  }
}
