/**
 * Time, passed in. Nothing in this library reads the clock or starts a timer by itself.
 *
 * A `Timers` remembers what it started, so that close() leaves nothing behind that would fire later
 * or keep a process alive.
 */

/** Longer waits overflow the 32-bit field browsers and Node keep a delay in, and fire at once. */
export const TIMER_MAX_MS = 2 ** 31 - 1;

const systemTimers = {
  setTimeout: (callback, delayMs) => globalThis.setTimeout(callback, delayMs),
  clearTimeout: (handle) => globalThis.clearTimeout(handle),
  now: () => Date.now(),
};

export class Timers {
  #source;
  #running = new Set();

  constructor(source = {}) {
    this.#source = { ...systemTimers, ...source };
  }

  now() {
    return this.#source.now();
  }

  /** Calls back once after `delayMs`; returns the function that cancels it. */
  after(delayMs, callback) {
    const cancel = () => {
      this.#source.clearTimeout(handle);
      this.#running.delete(cancel);
    };
    const handle = this.#source.setTimeout(
      () => {
        this.#running.delete(cancel);
        callback();
      },
      Math.min(delayMs, TIMER_MAX_MS),
    );
    this.#running.add(cancel);
    return cancel;
  }

  /** A promise for later. Never settles if the timers are cancelled meanwhile. */
  pause(delayMs) {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  cancelAll() {
    for (const cancel of [...this.#running]) cancel();
  }
}
