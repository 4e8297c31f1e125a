/**
 * Requests and their replies, matched by `id`.
 *
 * Every request is settled exactly once: by the reply, by the server's `error`, or with one of the
 * client's own codes. Without a connection a request waits for the next one within its time limit.
 * If the connection is lost before the reply, an idempotent request is sent again on the next one;
 * any other request fails with DISCONNECTED, because the client cannot know whether it took effect.
 */
import { RollcallError } from './error.js';

/** Waiting and sent ones together. The server allows as many in flight. Beyond it: QUEUE_FULL. */
export const PENDING_REQUESTS_MAX = 100;

export const REQUEST_TIMEOUT_MS = 10000;

export class Requests {
  #timers;
  #send;
  #isOpen;
  #pending = new Map();
  #lastId = 0;

  /**
   * `send(frame)` sends an object; `isOpen(early)` returns whether that is possible now. With
   * `early` it is possible before READY too, when only the client's own restoring requests are
   * sent.
   */
  constructor({ timers, send, isOpen }) {
    this.#timers = timers;
    this.#send = send;
    this.#isOpen = isOpen;
  }

  get size() {
    return this.#pending.size;
  }

  /**
   * `idempotent`: may be sent twice. `early`: it restores the present connection, so it is sent
   * before READY and fails with that connection. `signal`: an AbortSignal that ends the wait; a request that was sent
   * may still take effect.
   */
  request(
    type,
    fields = {},
    { timeoutMs = REQUEST_TIMEOUT_MS, idempotent = false, early = false, signal } = {},
  ) {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#pending.size >= PENDING_REQUESTS_MAX) {
      return Promise.reject(
        new RollcallError('QUEUE_FULL', `${PENDING_REQUESTS_MAX} requests are waiting`),
      );
    }
    if (early && !this.#isOpen(true)) {
      return Promise.reject(new RollcallError('DISCONNECTED', 'there is no connection'));
    }
    return new Promise((resolve, reject) => {
      const id = String(++this.#lastId);
      const entry = {
        frame: { ...fields, type, id },
        resolve,
        reject,
        idempotent,
        early,
        sent: false,
      };
      entry.cancelTimeout = this.#timers.after(timeoutMs, () => {
        this.#fail(id, new RollcallError('TIMEOUT', `no reply to ${type} within ${timeoutMs} ms`));
      });
      entry.signal = signal;
      entry.onAbort = () => this.#fail(id, signal.reason);
      signal?.addEventListener('abort', entry.onAbort);
      this.#pending.set(id, entry);
      this.#sendIfOpen(entry);
    });
  }

  /** Sends the requests that waited for a connection. */
  flush() {
    for (const entry of this.#pending.values()) {
      if (!entry.sent) this.#sendIfOpen(entry);
    }
  }

  /** Settles the request that a message answers; returns false if there is none. */
  settle(message) {
    const entry = this.#pending.get(message.id);
    if (entry === undefined) return false;
    if (message.type === 'error') this.#fail(message.id, RollcallError.fromMessage(message));
    else this.#take(message.id).resolve(message);
    return true;
  }

  /**
   * The server closed the connection because this request is too large; sending it again is no use.
   */
  tooLarge(id) {
    if (this.#pending.has(id))
      this.#fail(id, new RollcallError('MESSAGE_TOO_LARGE', 'larger than the server accepts'));
  }

  connectionLost() {
    for (const [id, entry] of [...this.#pending]) {
      if (entry.idempotent && !entry.early) entry.sent = false;
      else if (entry.sent)
        this.#fail(
          id,
          new RollcallError('DISCONNECTED', 'the connection was lost before the reply'),
        );
    }
  }

  failAll(error) {
    for (const id of [...this.#pending.keys()]) this.#fail(id, error);
  }

  #sendIfOpen(entry) {
    if (!this.#isOpen(entry.early)) return;
    entry.sent = true;
    this.#send(entry.frame);
  }

  #fail(id, error) {
    this.#take(id).reject(error);
  }

  #take(id) {
    const entry = this.#pending.get(id);
    this.#pending.delete(id);
    entry.cancelTimeout();
    entry.signal?.removeEventListener('abort', entry.onAbort);
    return entry;
  }
}
