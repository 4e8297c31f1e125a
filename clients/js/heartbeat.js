/**
 * Signs of life, both ways.
 *
 * A heartbeat goes out every interval. Browsers slow the timers of hidden pages down to one a minute,
 * far too few for the server, but only timers that were started by timers: so the answer to a
 * heartbeat starts the wait for the next anew. Death is counted from the first heartbeat nothing came
 * back for, not from the last thing heard: a page woken late must ask before it may conclude
 * anything.
 */
export class Heartbeat {
  #timers;
  #send;
  #onDead;
  #intervalMs = 0;
  #expiryMs = 0;
  #nextBeatMs = 0;
  #cancelBeat = () => {};
  #cancelDeath = null;

  /** `send()` sends one heartbeat; `onDead()` is called once, when the heartbeat has stopped. */
  constructor({ timers, send, onDead }) {
    this.#timers = timers;
    this.#send = send;
    this.#onDead = onDead;
  }

  start({ intervalMs, expiryMs }) {
    this.stop();
    this.#intervalMs = intervalMs;
    this.#expiryMs = expiryMs;
    this.beat();
  }

  stop() {
    this.#intervalMs = 0;
    this.heard();
    this.#cancelBeat();
    this.#cancelBeat = () => {};
  }

  get running() {
    return this.#intervalMs > 0;
  }

  /** Sends now, and begins the interval anew. */
  beat() {
    if (!this.running) return;
    this.#nextBeatMs = this.#timers.now() + this.#intervalMs;
    this.#beatAfter(this.#intervalMs);
    this.#cancelDeath ??= this.#timers.after(this.#expiryMs, () => {
      this.stop();
      this.#onDead();
    });
    this.#send();
  }

  /** Anything from the server proves that it lives. */
  heard() {
    if (this.#cancelDeath === null) return;
    this.#cancelDeath();
    this.#cancelDeath = null;
    if (!this.running) return;
    const leftMs = this.#nextBeatMs - this.#timers.now(); // absurd when the clock was set
    this.#beatAfter(Math.max(0, Math.min(leftMs, this.#intervalMs)));
  }

  #beatAfter(delayMs) {
    this.#cancelBeat();
    this.#cancelBeat = this.#timers.after(delayMs, () => this.beat());
  }
}
