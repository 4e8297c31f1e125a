/**
 * Decides whether the user is active. Input makes the page active; no input for `idleAfterMs`, or a
 * hidden page for `hiddenAfterMs`, makes it idle.
 *
 * A page that is hidden for a moment stays active, so hiding has a limit of its own; a hidden page
 * gets no input, so that limit is shorter. setActive() overrides the page. Without a page (Node)
 * and without setActive(), `active` is `undefined`, and heartbeats carry no activity.
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
  #override;
  #lastSignMs = 0;
  #reported;
  #cancelCheck = () => {};

  /** `page` is a Document or undefined; `onChange()` is called when `active` has changed. */
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
        this.#page.addEventListener(type, this.#onSign, { passive: true, capture: true });
      this.#page.addEventListener('visibilitychange', this.#onSign);
    }
    this.#lastSignMs = this.#timers.now();
    this.#reported = this.active;
    this.#check();
  }

  stop() {
    this.#cancelCheck();
    this.#cancelCheck = () => {};
    for (const type of INPUT_EVENTS)
      this.#page?.removeEventListener(type, this.#onSign, { capture: true });
    this.#page?.removeEventListener('visibilitychange', this.#onSign);
  }

  /** true, false, or undefined if unknown. */
  get active() {
    if (this.#override !== undefined) return this.#override;
    if (this.#page === undefined) return undefined;
    return this.#idleForMs < this.#idleLimitMs;
  }

  /** true or false overrides the page; null returns the decision to the page. */
  override(active) {
    this.#override = active ?? undefined;
    this.#lastSignMs = this.#timers.now();
    this.#check();
  }

  /** If the clock was set back, the idle time starts again, so that it cannot grow longer. */
  get #idleForMs() {
    const nowMs = this.#timers.now();
    this.#lastSignMs = Math.min(this.#lastSignMs, nowMs);
    return nowMs - this.#lastSignMs;
  }

  get #idleLimitMs() {
    return this.#page.visibilityState === 'hidden' ? this.#hiddenAfterMs : this.#idleAfterMs;
  }

  #onSign = () => {
    this.#lastSignMs = this.#timers.now();
    const hidden = this.#page.visibilityState === 'hidden';
    if (this.#reported !== true || hidden) this.#check(); // else the pending check reads #lastSignMs
  };

  /** Reports a change, and checks again when the page would become idle. */
  #check = () => {
    this.#cancelCheck();
    const { active } = this;
    if (active === true && this.#override === undefined) {
      this.#cancelCheck = this.#timers.after(this.#idleLimitMs - this.#idleForMs, this.#check);
    }
    if (active === this.#reported) return;
    this.#reported = active;
    this.#onChange();
  };
}
