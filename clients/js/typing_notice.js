/**
 * Sends typing notices while the user types.
 *
 * The server ends a notice after 5 s and drops more than one a second. So the notice is repeated
 * while the user types, and a notice that is too early waits, unless the user has stopped by then.
 */
const PAUSE_MS = 1200;

export class TypingNotice {
  #send;
  #sentMs = -Infinity;
  #typing = false;
  #timer = null;

  /** `send(typing)` sends one notice. */
  constructor(send) {
    this.#send = send;
  }

  /** The input has changed and is not empty. */
  typed() {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#sentMs + PAUSE_MS - Date.now());
    if (waitMs === 0) this.#start();
    else this.#timer = setTimeout(() => this.#start(), waitMs);
  }

  /** The input is empty, or has lost the focus. */
  stopped() {
    const typing = this.#typing;
    this.sent();
    if (typing) this.#send(false);
  }

  /** A message was sent: the server ends the notice by itself. */
  sent() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#typing = false;
  }

  #start() {
    this.#timer = null;
    this.#typing = true;
    this.#sentMs = Date.now();
    this.#send(true);
  }
}
