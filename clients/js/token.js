/**
 * Where tokens come from and when they are replaced.
 *
 * A token is opaque to the client but for `exp`, read to act before the server has to close the
 * connection. Verifying it is the server's business.
 */
import { RollcallError } from './error.js';
import { backoffDelayMs } from './backoff.js';
import { TIMER_MAX_MS } from './timers.js';

/** Ask for the next token this long before the present one ends … */
export const REFRESH_MARGIN_MS = 60000;
/** … or, for a token that does not live that long, after this part of what is left. */
export const REFRESH_SHORT_LIFE_PART = 0.5;
/** But never more often, should getToken keep handing out a token about to end. */
export const REFRESH_PAUSE_MIN_MS = 1000;

/** A token this close to its end is not worth a handshake. */
const EXPIRY_SLACK_MS = 2000;

/** When a token ends, in milliseconds since 1970; Infinity where it does not say. */
export function tokenExpiryMs(token) {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    const { exp } = JSON.parse(atob(payload));
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity;
  }
}

/** The present token and, if the application gave `getToken`, the way to the next. */
export class TokenSource {
  #token;
  #getToken;
  #now;

  constructor({ token, getToken, now }) {
    this.#token = token;
    this.#getToken = getToken;
    this.#now = now;
  }

  get renewable() {
    return this.#getToken !== undefined;
  }

  get expiresAtMs() {
    return this.#token === undefined ? Infinity : tokenExpiryMs(this.#token);
  }

  /** A token fit for a handshake: the present one while it lasts, else a fresh one. */
  async current() {
    const usable = this.#token !== undefined && this.#now() < this.expiresAtMs - EXPIRY_SLACK_MS;
    if (usable) return this.#token;
    if (this.renewable) return this.fetch();
    throw new RollcallError(
      'UNAUTHENTICATED',
      this.#token ? 'the token has expired' : 'no token was given',
    );
  }

  async fetch() {
    if (!this.renewable)
      throw new RollcallError('UNAUTHENTICATED', 'there is no getToken to ask for a new token');
    const token = await this.#getToken();
    if (typeof token !== 'string' || token === '') {
      throw new RollcallError('UNAUTHENTICATED', 'getToken gave no token');
    }
    this.#token = token;
    return token;
  }

  replace(token) {
    this.#token = token;
  }

  /** Called when the server refused the present token. Without `getToken` it is all there is. */
  discard() {
    if (this.renewable) this.#token = undefined;
  }
}

/** Sends a fresh token over the open connection before the present one ends. */
export class TokenRefresh {
  #tokens;
  #timers;
  #random;
  #send;
  #onError;
  #onRefused;
  #turn = 0;
  #cancel = () => {};

  /**
   * `send(token)` promises the server's reply; `onError(error)` hears of what is tried again,
   * `onRefused(error)` that getToken has no token for this user any more.
   */
  constructor({ tokens, timers, random, send, onError, onRefused }) {
    this.#tokens = tokens;
    this.#timers = timers;
    this.#random = random;
    this.#send = send;
    this.#onError = onError;
    this.#onRefused = onRefused;
  }

  /** `skewMs` is the server's clock less ours: the server's decides when a token ends. */
  start(skewMs) {
    this.stop();
    if (!this.#tokens.renewable || this.#tokens.expiresAtMs === Infinity) return;
    const leftMs = this.#tokens.expiresAtMs - this.#timers.now() - skewMs;
    const waitMs = Math.max(
      leftMs - REFRESH_MARGIN_MS,
      leftMs * REFRESH_SHORT_LIFE_PART,
      REFRESH_PAUSE_MIN_MS,
    );
    this.#cancel = this.#timers.after(waitMs, () => {
      if (waitMs > TIMER_MAX_MS) this.start(skewMs);
      else this.#refresh(skewMs, 0);
    });
  }

  /** Also what is under way comes to nothing: its connection is no more. */
  stop() {
    this.#turn += 1;
    this.#cancel();
    this.#cancel = () => {};
  }

  async #refresh(skewMs, attempt) {
    const turn = this.#turn;
    try {
      const token = await this.#fetch(turn);
      if (turn !== this.#turn) return;
      await this.#send(token);
      if (turn === this.#turn) this.start(skewMs);
    } catch (error) {
      const leftToTheNext = turn !== this.#turn || error.code === 'DISCONNECTED';
      if (!leftToTheNext) this.#retry(error, skewMs, attempt);
    }
  }

  /** An authority that says no is not asked again. */
  async #fetch(turn) {
    try {
      return await this.#tokens.fetch();
    } catch (error) {
      if (turn === this.#turn && error.code === 'UNAUTHENTICATED') this.#onRefused(error);
      throw error;
    }
  }

  /** Until the token ends; then the server's close starts a new handshake. */
  #retry(error, skewMs, attempt) {
    this.#onError(error);
    const waitMs = backoffDelayMs(attempt, this.#random);
    this.#cancel = this.#timers.after(waitMs, () => this.#refresh(skewMs, attempt + 1));
  }
}
