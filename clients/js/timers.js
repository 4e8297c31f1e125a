/**
 * Clock and timers. All other files of this library use only these, so that tests can replace them.
 *
 * `Timers` keeps a list of the running timers, so that close() leaves none that would fire later or
 * keep a process alive.
 */

/** Browsers and Node store a delay in 32 bits: a longer one overflows and fires at once. */
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

  /** Resolves after `delayMs`. Never settles if the timers are cancelled first. */
  pause(delayMs) {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  cancelAll() {
    for (const cancel of [...this.#running]) cancel();
  }
}
