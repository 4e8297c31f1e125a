/**
 * All errors of the client are one class, so that a caller needs only `code` to decide.
 *
 * The server's codes are passed on unchanged (INVALID_MESSAGE, RATE_LIMITED, …). The client adds
 * four of its own:
 *
 *   TIMEOUT        no reply within the time limit; the request may or may not have taken effect
 *   DISCONNECTED   the connection was lost before the reply; the request may have taken effect
 *   QUEUE_FULL     a limit of this client was reached; nothing was sent
 *   CLOSED         close() was called, or the server does not allow reconnecting
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
  constructor(code, message, { status, retryAfterSeconds, clientMessageId, chatId, cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'RollcallError';
    this.code = code;
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
    this.clientMessageId = clientMessageId;
    this.chatId = chatId;
  }

  /** Creates the error for an `error` message of the server. */
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
