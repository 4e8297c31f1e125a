/**
 * Tells the other side that the user types, as often as it needs and the server takes.
 *
 * The server forgets a typist after 5 s and drops what comes more than once a second. So a sign is
 * repeated while keys are pressed, and one that would come too early waits for its time, unless the
 * user has stopped by then.
 */
const PAUSE_MS = 1200;

export class TypingSign {
  #say;
  #saidMs = -Infinity;
  #typing = false;
  #timer = null;

  /** `say(typing)` sends one sign. */
  constructor(say) {
    this.#say = say;
  }

  /** A key was pressed, and there is something to send. */
  typed() {
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#saidMs + PAUSE_MS - Date.now());
    if (waitMs === 0) this.#start();
    else this.#timer = setTimeout(() => this.#start(), waitMs);
  }

  /** The line is empty, or out of sight. */
  stopped() {
    const typing = this.#typing;
    this.sent();
    if (typing) this.#say(false);
  }

  /** A message says by itself that its writing is over. */
  sent() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#typing = false;
  }

  #start() {
    this.#timer = null;
    this.#typing = true;
    this.#saidMs = Date.now();
    this.#say(true);
  }
}
