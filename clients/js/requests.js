/**
 * Requests and their replies, matched by `id`.
 *
 * Every request is answered exactly once: by the reply, by the server's `error`, or by one of the
 * client's own codes. While there is no connection a request waits, within its time limit, for the
 * next one. If the connection is lost under it, an idempotent request is sent again on the next and
 * any other fails with DISCONNECTED, since nobody can know whether it was carried out.
 */
import { RollcallError } from './error.js';

/** Waiting and sent together; the server allows as many in flight. Beyond it: QUEUE_FULL. */
export const PENDING_REQUESTS_MAX = 100;

export const REQUEST_TIMEOUT_MS = 10000;

export class Requests {
  #timers;
  #send;
  #isOpen;
  #pending = new Map();
  #lastId = 0;

  /**
   * `send(frame)` puts an object on the wire; `isOpen(early)` says whether that can be done now,
   * `early` asking for the time in which only the client's own restoring requests may go out.
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
   * `idempotent`: may be sent twice. `early`: belongs to restoring the connection it is made on, so
   * it goes out before READY and dies with that connection.
   */
  request(
    type,
    fields = {},
    { timeoutMs = REQUEST_TIMEOUT_MS, idempotent = false, early = false } = {},
  ) {
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
      this.#pending.set(id, entry);
      this.#sendIfOpen(entry);
    });
  }

  /** Sends what has been waiting for a connection. */
  flush() {
    for (const entry of this.#pending.values()) {
      if (!entry.sent) this.#sendIfOpen(entry);
    }
  }

  /** Settles the request a message answers; false if it answers none. */
  settle(message) {
    const entry = this.#pending.get(message.id);
    if (entry === undefined) return false;
    if (message.type === 'error') this.#fail(message.id, RollcallError.fromMessage(message));
    else this.#take(message.id).resolve(message);
    return true;
  }

  /** The server closed the connection over the size of this one: it would do so again. */
  tooLarge(id) {
    if (this.#pending.has(id))
      this.#fail(id, new RollcallError('MESSAGE_TOO_LARGE', 'larger than the server takes'));
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
    return entry;
  }
}
