/**
 * Is somebody there? Read off the page: input makes it active; no input for `idleAfterMs`, or being
 * out of sight for `hiddenAfterMs`, makes it idle.
 *
 * A glance at another tab is not an absence, hence the second limit; a hidden page gets no input,
 * hence a shorter one. setActive() overrules the page. Without a page (Node) and without it the
 * answer is `undefined`: heartbeats then say nothing about activity.
 */

export const IDLE_AFTER_MS = 300000;
export const HIDDEN_AFTER_MS = 60000;

const INPUT_EVENTS = ['pointerdown', 'pointermove', 'keydown', 'wheel', 'touchstart'];

export class Activity {
  #page;
  #timers;
  #onChange;
  #idleAfterMs;
  #hiddenAfterMs;
  #overruled;
  #lastSignMs = 0;
  #reported;
  #cancelCheck = () => {};

  /** `page` is a Document or undefined; `onChange()` is called when the answer has changed. */
  constructor({
    page,
    timers,
    onChange,
    idleAfterMs = IDLE_AFTER_MS,
    hiddenAfterMs = HIDDEN_AFTER_MS,
  }) {
    this.#page = page;
    this.#timers = timers;
    this.#onChange = onChange;
    this.#idleAfterMs = idleAfterMs;
    this.#hiddenAfterMs = hiddenAfterMs;
  }

  start() {
    if (this.#page !== undefined) {
      this.stop();
      for (const type of INPUT_EVENTS)
        this.#page.addEventListener(type, this.#sign, { passive: true, capture: true });
      this.#page.addEventListener('visibilitychange', this.#sign);
    }
    this.#lastSignMs = this.#timers.now();
    this.#reported = this.active;
    this.#check();
  }

  stop() {
    this.#cancelCheck();
    this.#cancelCheck = () => {};
    for (const type of INPUT_EVENTS)
      this.#page?.removeEventListener(type, this.#sign, { capture: true });
    this.#page?.removeEventListener('visibilitychange', this.#sign);
  }

  /** true, false, or undefined for "cannot tell". */
  get active() {
    if (this.#overruled !== undefined) return this.#overruled;
    if (this.#page === undefined) return undefined;
    return this.#quietMs < this.#patienceMs;
  }

  /** true or false overrules the page, null leaves it to the page again. */
  overrule(active) {
    this.#overruled = active ?? undefined;
    this.#lastSignMs = this.#timers.now();
    this.#check();
  }

  /** A clock that was set back must not make the quiet last longer: it counts from there again. */
  get #quietMs() {
    const nowMs = this.#timers.now();
    this.#lastSignMs = Math.min(this.#lastSignMs, nowMs);
    return nowMs - this.#lastSignMs;
  }

  get #patienceMs() {
    return this.#page.visibilityState === 'hidden' ? this.#hiddenAfterMs : this.#idleAfterMs;
  }

  #sign = () => {
    this.#lastSignMs = this.#timers.now();
    const hidden = this.#page.visibilityState === 'hidden';
    if (this.#reported !== true || hidden) this.#check(); // else the running check will see it
  };

  /** Reports a change, and looks again when the page would become idle. */
  #check = () => {
    this.#cancelCheck();
    const { active } = this;
    if (active === true && this.#overruled === undefined) {
      this.#cancelCheck = this.#timers.after(this.#patienceMs - this.#quietMs, this.#check);
    }
    if (active === this.#reported) return;
    this.#reported = active;
    this.#onChange();
  };
}
