/**
 * Where tokens come from and when they are replaced.
 *
 * The client reads only `exp` of a token, to replace it before the server closes the connection. It
 * does not verify tokens; the server does.
 */
import { RollcallError } from './error.js';
import { backoffDelayMs } from './backoff.js';
import { TIMER_MAX_MS } from './timers.js';

/** Fetch the next token this long before the present one expires … */
export const REFRESH_MARGIN_MS = 60000;
/** … or, if the token expires sooner, after this part of the remaining time. */
export const REFRESH_SHORT_LIFE_PART = 0.5;
/** The shortest wait, in case getToken keeps returning tokens that are about to expire. */
export const REFRESH_PAUSE_MIN_MS = 1000;

/** A call of getToken that has taken this long is not waited for by others. */
const FETCH_SHARED_MS = 10000;

/** A token that expires this soon is not used for a handshake. */
const EXPIRY_SLACK_MS = 2000;

/** When a token expires, in milliseconds since 1970; Infinity if it has no `exp`. */
export function tokenExpiryMs(token) {
  try {
    const payload = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/');
    const { exp } = JSON.parse(atob(payload));
    return typeof exp === 'number' ? exp * 1000 : Infinity;
  } catch {
    return Infinity;
  }
}

/** The present token and, if the application has a `getToken`, the source of the next. */
export class TokenSource {
  #token;
  #getToken;
  #now;
  #fetching = null;
  #fetchingSinceMs = 0;

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

  /** A token for a handshake: the present one until it expires, else a fresh one. */
  async current() {
    const usable = this.#token !== undefined && this.#now() < this.expiresAtMs - EXPIRY_SLACK_MS;
    if (usable) return this.#token;
    if (this.renewable) return this.fetch();
    throw new RollcallError(
      'UNAUTHENTICATED',
      this.#token ? 'the token has expired' : 'no token was given',
    );
  }

  /** Requests that need a token at the same time share one call of getToken, unless that call hangs. */
  fetch() {
    const nowMs = this.#now();
    if (this.#fetching === null || nowMs - this.#fetchingSinceMs >= FETCH_SHARED_MS) {
      const fetching = this.#fetch().finally(() => {
        if (this.#fetching === fetching) this.#fetching = null;
      });
      this.#fetching = fetching;
      this.#fetchingSinceMs = nowMs;
    }
    return this.#fetching;
  }

  async #fetch() {
    if (!this.renewable)
      throw new RollcallError('UNAUTHENTICATED', 'there is no getToken for a new token');
    const token = await this.#getToken();
    if (typeof token !== 'string' || token === '') {
      throw new RollcallError('UNAUTHENTICATED', 'getToken returned no token');
    }
    this.#token = token;
    return token;
  }

  replace(token) {
    this.#token = token;
  }

  /**
   * The server refused this token, which another may have replaced meanwhile. Returns false if there is no other,
   * because there is no `getToken`.
   */
  discard(token = this.#token) {
    if (!this.renewable) return false;
    if (token === this.#token) this.#token = undefined;
    return true;
  }
}

/** Sends a fresh token over the open connection before the present one expires. */
export class TokenRefresh {
  #tokens;
  #timers;
  #random;
  #send;
  #onError;
  #onRefused;
  #generation = 0;
  #cancel = () => {};

  /**
   * `send(token)` promises the server's reply; `onError(error)` gets errors that are retried;
   * `onRefused(error)` is called when getToken has no more tokens for this user.
   */
  constructor({ tokens, timers, random, send, onError, onRefused }) {
    this.#tokens = tokens;
    this.#timers = timers;
    this.#random = random;
    this.#send = send;
    this.#onError = onError;
    this.#onRefused = onRefused;
  }

  /** `skewMs` is the server's clock minus ours: the server's clock decides when a token expires. */
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

  /** Also cancels a refresh that is in progress, because its connection is gone. */
  stop() {
    this.#generation += 1;
    this.#cancel();
    this.#cancel = () => {};
  }

  async #refresh(skewMs, attempt) {
    const generation = this.#generation;
    try {
      const token = await this.#fetch(generation);
      if (generation !== this.#generation) return;
      await this.#send(token);
      if (generation === this.#generation) this.start(skewMs);
    } catch (error) {
      const connectionLost = generation !== this.#generation || error.code === 'DISCONNECTED';
      if (!connectionLost) this.#retry(error, skewMs, attempt);
    }
  }

  /** If getToken throws UNAUTHENTICATED, it is not called again. */
  async #fetch(generation) {
    try {
      return await this.#tokens.fetch();
    } catch (error) {
      if (generation === this.#generation && error.code === 'UNAUTHENTICATED') this.#onRefused(error);
      throw error;
    }
  }

  /** Retries until the token expires; then the server's close leads to a new handshake. */
  #retry(error, skewMs, attempt) {
    this.#onError(error);
    const waitMs = backoffDelayMs(attempt, this.#random);
    this.#cancel = this.#timers.after(waitMs, () => this.#refresh(skewMs, attempt + 1));
  }
}
