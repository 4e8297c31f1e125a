/**
 * Sends heartbeats, and detects a server that no longer answers them.
 *
 * The client sends a heartbeat every interval. Browsers slow the timers of hidden pages down to one
 * a minute, which is too slow for the server, but only timers that were started by timers. So the
 * answer to a heartbeat, which is no timer, starts the wait for the next one. The connection is
 * dead when the first unanswered heartbeat is older than the expiry window. The time of the last
 * received message would be wrong: a page that wakes up late must send a heartbeat before it can
 * decide.
 */
export class Heartbeat {
  #timers;
  #send;
  #onDead;
  #intervalMs = 0;
  #expiryMs = 0;
  #nextBeatMs = 0;
  #cancelBeat = () => {};
  #cancelExpiry = null;

  /** `send()` sends one heartbeat; `onDead()` is called once, after heartbeats have stopped. */
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
    this.onReceived();
    this.#cancelBeat();
    this.#cancelBeat = () => {};
  }

  get running() {
    return this.#intervalMs > 0;
  }

  /** Sends a heartbeat now, and starts the interval again. */
  beat() {
    if (!this.running) return;
    this.#nextBeatMs = this.#timers.now() + this.#intervalMs;
    this.#beatAfter(this.#intervalMs);
    this.#cancelExpiry ??= this.#timers.after(this.#expiryMs, () => {
      this.stop();
      this.#onDead();
    });
    this.#send();
  }

  /** Any message from the server proves that the connection works. */
  onReceived() {
    if (this.#cancelExpiry === null) return;
    this.#cancelExpiry();
    this.#cancelExpiry = null;
    if (!this.running) return;
    const leftMs = this.#nextBeatMs - this.#timers.now(); // out of range if the clock was set
    this.#beatAfter(Math.max(0, Math.min(leftMs, this.#intervalMs)));
  }

  #beatAfter(delayMs) {
    this.#cancelBeat();
    this.#cancelBeat = this.#timers.after(delayMs, () => this.beat());
  }
}
