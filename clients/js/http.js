/**
 * Requests to the HTTP API: adds the token, fetches a new one once if the server refuses it, and turns every failure
 * into a RollcallError.
 *
 * The codes are the server's. Without an answer the code is TIMEOUT, or DISCONNECTED if the server could not be
 * reached; the request may have taken effect. A request that the application cancels rejects with the reason of its
 * AbortSignal, as fetch() does.
 */
import { RollcallError } from './error.js';
import { Timers } from './timers.js';

export const HTTP_TIMEOUT_MS = 30000;

const UNAUTHORIZED = 401;
const NO_CONTENT = 204;

/** For answers without an error object, such as those of a proxy. */
const CODES_BY_STATUS = {
  400: 'INVALID_MESSAGE',
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  413: 'MESSAGE_TOO_LARGE',
  429: 'RATE_LIMITED',
};

export class Http {
  #url;
  #tokens;
  #fetch;
  #timers;

  /** `url` is where the paths start, without a slash at the end; without `tokens` requests carry none. */
  constructor({ url, tokens = null, fetch = globalThis.fetch, timers = new Timers() }) {
    if (!fetch) throw new TypeError('there is no global fetch: pass one');
    this.#url = url;
    this.#tokens = tokens;
    this.#fetch = (...request) => fetch(...request); // a browser's fetch must not be called as a method
    this.#timers = timers;
  }

  /** Promises the JSON of the answer, or null if it has none. */
  async request(method, path, { query = {}, body, signal, timeoutMs = HTTP_TIMEOUT_MS } = {}) {
    const address = this.#url + path + queryText(query);
    const cancellation = new Cancellation(signal, this.#timers, timeoutMs);
    try {
      const response = await this.#sendWithToken(address, method, body, cancellation);
      if (response.status === NO_CONTENT) return null;
      const answer = await response.json().catch(() => null);
      cancellation.check();
      if (!response.ok) throw errorOf(response, answer);
      if (answer === null) throw new RollcallError('SERVICE_UNAVAILABLE', 'the answer is not JSON');
      return answer;
    } finally {
      cancellation.end();
    }
  }

  async #sendWithToken(address, method, body, cancellation) {
    if (this.#tokens === null) return this.#send(address, method, body, undefined, cancellation);
    const token = await cancellation.race(this.#tokens.current());
    const response = await this.#send(address, method, body, token, cancellation);
    if (response.status !== UNAUTHORIZED || !this.#tokens.discard(token)) return response;
    const fresh = await cancellation.race(this.#tokens.current());
    return this.#send(address, method, body, fresh, cancellation);
  }

  async #send(address, method, body, token, cancellation) {
    const headers = {};
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    try {
      return await this.#fetch(address, { method, headers, body: text, signal: cancellation.signal });
    } catch (error) {
      cancellation.check();
      throw new RollcallError('DISCONNECTED', 'the server could not be reached', { cause: error });
    }
  }
}

/** Ends a request early: the application cancels it, or its time is over. */
class Cancellation {
  #controller = new AbortController();
  #cancelTimeout;
  #outer;
  #onAbort = () => this.#controller.abort(this.#outer.reason);

  constructor(outer, timers, timeoutMs) {
    this.#outer = outer;
    outer?.throwIfAborted();
    outer?.addEventListener('abort', this.#onAbort);
    this.#cancelTimeout = timers.after(timeoutMs, () =>
      this.#controller.abort(new RollcallError('TIMEOUT', `no answer within ${timeoutMs} ms`)),
    );
  }

  get signal() {
    return this.#controller.signal;
  }

  /** Throws the reason if the request was ended. */
  check() {
    if (this.signal.aborted) throw this.signal.reason;
  }

  /** For work that cannot be stopped: promises its result, or rejects when the request is ended. */
  race(work) {
    return new Promise((resolve, reject) => {
      this.signal.addEventListener('abort', () => reject(this.signal.reason), { once: true });
      work.then(resolve, reject);
    });
  }

  end() {
    this.#cancelTimeout();
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}

function queryText(query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
}

function errorOf(response, answer) {
  const { status } = response;
  const { code, message, retry_after_seconds: seconds, client_message_id: id } = answer?.error ?? {};
  const header = Number(response.headers.get('Retry-After') ?? NaN);
  return new RollcallError(
    code ?? CODES_BY_STATUS[status] ?? 'SERVICE_UNAVAILABLE',
    message ?? `the server answered ${status}`,
    { status, retryAfterSeconds: seconds ?? (header >= 0 ? header : undefined), clientMessageId: id },
  );
}
