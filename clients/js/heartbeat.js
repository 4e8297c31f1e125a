/**
 * Signs of life, both ways.
 *
 * A heartbeat goes out every interval. Death is counted from the first heartbeat nothing came back
 * for, not from the last thing heard: browsers slow the timers of hidden pages down to one a
 * minute, and a page woken that late must ask before it may conclude anything.
 */
export class Heartbeat {
  #timers;
  #send;
  #onDead;
  #intervalMs = 0;
  #expiryMs = 0;
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
    this.#cancelBeat();
    this.#cancelBeat = () => {};
    this.heard();
    this.#intervalMs = 0;
  }

  get running() {
    return this.#intervalMs > 0;
  }

  /** Sends now, and begins the interval anew. */
  beat() {
    if (!this.running) return;
    this.#cancelBeat();
    this.#cancelBeat = this.#timers.after(this.#intervalMs, () => this.beat());
    this.#cancelDeath ??= this.#timers.after(this.#expiryMs, () => {
      this.stop();
      this.#onDead();
    });
    this.#send();
  }

  /** Anything from the server proves that it lives. */
  heard() {
    this.#cancelDeath?.();
    this.#cancelDeath = null;
  }
}
