/**
 * The connection that comes back: one WebSocket at a time, and the rules by which a lost one is
 * replaced.
 *
 *   DISCONNECTED --connect()--> RECONNECTING --socket open--> CONNECTED
 *   RECONNECTING --failure--> BACKOFF --delay over, or connect()--> RECONNECTING
 *   CONNECTED --connection_established--> SYNCING --markReady()--> READY
 *   CONNECTED | SYNCING | READY --connection_closing--> CLOSING --socket closed--> DISCONNECTED
 *   CONNECTED | SYNCING | READY --socket closed--> DISCONNECTED
 *   DISCONNECTED --unless it is final--> BACKOFF
 *   any --close(), or the server does not want us back--> DISCONNECTED
 *
 * The delays start over once READY has lasted for a while, so that a server which takes connections
 * only to drop them is not asked every second. A close by the server is not a failure: it is final
 * only when the server said `reconnect_allowed: false`, or refused a fresh token too. A refused
 * token (401, 4001, `token_expired`) is replaced once per outage; where the handshake fails and the
 * browser hides why, that may have been a 401, and the token is replaced once as well.
 */
import { RollcallError } from './error.js';
import { backoffDelayMs, RECONNECT_AFTER_MAX_MS } from './backoff.js';

export const CONNECTED = 'CONNECTED';
export const CLOSING = 'CLOSING';
export const DISCONNECTED = 'DISCONNECTED';
export const BACKOFF = 'BACKOFF';
export const RECONNECTING = 'RECONNECTING';
export const SYNCING = 'SYNCING';
export const READY = 'READY';

const TRANSITIONS = {
  DISCONNECTED: [RECONNECTING, BACKOFF],
  RECONNECTING: [CONNECTED, BACKOFF, DISCONNECTED],
  BACKOFF: [RECONNECTING, DISCONNECTED],
  CONNECTED: [SYNCING, CLOSING, DISCONNECTED],
  SYNCING: [READY, CLOSING, DISCONNECTED],
  READY: [CLOSING, DISCONNECTED],
  CLOSING: [DISCONNECTED],
};

/** From the start of a handshake to `connection_established`. */
export const HANDSHAKE_TIMEOUT_MS = 10000;

/** A draining server spreads its closings; one that takes longer than this is left. */
export const CLOSING_TIMEOUT_MS = 60000;

/** READY for this long, a connection counts as good. */
export const STABLE_AFTER_MS = 10000;

const PROTOCOL = 'rollcall.v1';
const CLOSE_NORMAL = 1000;
const CLOSE_TOO_LARGE = 1009;
const CLOSE_TOKEN = 4001;
const OPEN = 1;

const NONE_SENT = { id: undefined, bytes: 0 };

export class Link {
  #url;
  #tokens;
  #WebSocket;
  #timers;
  #random;
  #events;
  #state = DISCONNECTED;
  #socket = null;
  #attempts = 0;
  #tokenReplaced = false;
  #closing = null;
  #closingSinceMs = 0;
  #refused = false;
  #largestSent = NONE_SENT;
  #turn = 0;
  #cancelTimer = () => {};

  /**
   * `events` is what the owner is told: state(change), established(message), message(message),
   * error(error), tooLarge(id) with the id of the frame the server closed the connection for. A
   * change to DISCONNECTED with `final` is not followed by another attempt.
   */
  constructor({ url, tokens, WebSocket, timers, random, events }) {
    this.#url = url;
    this.#tokens = tokens;
    this.#WebSocket = WebSocket;
    this.#timers = timers;
    this.#random = random;
    this.#events = events;
  }

  get state() {
    return this.#state;
  }

  /** Begins, or cuts a back-off short. Does nothing while a connection stands or is being made. */
  connect() {
    if (this.#state === DISCONNECTED || this.#state === BACKOFF) this.#attempt();
  }

  /** Ends for good, until connect() is called again. `error` is what a waiting caller gets. */
  close(error) {
    this.#detach();
    if (this.#state !== DISCONNECTED) this.#giveUp(error);
  }

  /** Gives the present connection up for dead. */
  drop(reason) {
    if (this.#socket !== null) this.#lost({ reason });
  }

  markReady() {
    this.#tokenReplaced = false;
    this.#cancelTimer = this.#timers.after(STABLE_AFTER_MS, () => {
      this.#attempts = 0;
    });
    this.#setState(READY);
  }

  /** False if there is no open socket to put it on. */
  send(frame) {
    if (this.#socket?.readyState !== OPEN) return false;
    const text = JSON.stringify(frame);
    const { length: bytes } = new TextEncoder().encode(text);
    if (bytes > this.#largestSent.bytes) this.#largestSent = { id: frame.id, bytes };
    this.#socket.send(text);
    return true;
  }

  /** The one door for every change of state. */
  #setState(next, detail = {}) {
    const previous = this.#state;
    if (!TRANSITIONS[previous].includes(next))
      throw new Error(`no way from ${previous} to ${next}`);
    this.#state = next;
    this.#events.state({ state: next, previous, ...detail });
  }

  async #attempt() {
    const turn = ++this.#turn;
    this.#cancelTimer();
    this.#setState(RECONNECTING);
    this.#cancelTimer = this.#timers.after(HANDSHAKE_TIMEOUT_MS, () =>
      this.#lost({ reason: 'handshake_timeout' }),
    );
    try {
      const token = await this.#tokens.current();
      if (turn === this.#turn) this.#openSocket(token);
    } catch (error) {
      if (turn === this.#turn) this.#attemptFailed(error);
    }
  }

  /** An authority that says no is final; one that cannot be reached is asked again. */
  #attemptFailed(error) {
    if (error.code === 'UNAUTHENTICATED') {
      this.#giveUp(error);
      return;
    }
    this.#events.error(error);
    this.#lost({ reason: 'no_token_or_socket' });
  }

  #openSocket(token) {
    const socket = new this.#WebSocket(this.#url, [PROTOCOL, `bearer.${token}`]);
    this.#socket = socket;
    this.#closing = null;
    this.#refused = false;
    this.#largestSent = NONE_SENT;
    socket.onopen = () => this.#setState(CONNECTED);
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onerror = (event) => {
      this.#refused ||= /\b401\b/.test(event?.message ?? '');
    };
    socket.onclose = (event) => this.#lost({ code: event.code, reason: event.reason });
  }

  #receive(text) {
    const message = parseMessage(text);
    if (message === null) {
      this.#events.error(
        new RollcallError('INVALID_MESSAGE', 'the server sent something that is not a message'),
      );
    } else if (message.type === 'connection_established' && this.#state === CONNECTED) {
      this.#cancelTimer();
      this.#setState(SYNCING);
      this.#events.established(message);
    } else {
      if (message.type === 'connection_closing') this.#announceClosing(message);
      this.#events.message(message);
    }
  }

  /** The wait the server asks for includes the time until it closes. */
  #announceClosing(message) {
    this.#closing = message;
    this.#closingSinceMs = this.#timers.now();
    if (this.#state === CLOSING) return;
    this.#cancelTimer();
    this.#cancelTimer = this.#timers.after(CLOSING_TIMEOUT_MS, () => this.drop('closing_timeout'));
    this.#setState(CLOSING, { reason: message.reason });
  }

  /** Every end of a connection, and of an attempt at one, arrives here. */
  #lost({ code, reason }) {
    const failedAttempt = this.#state === RECONNECTING;
    const finalError = this.#finalError(code, failedAttempt);
    this.#cancelTimer();
    this.#detach();
    if (finalError !== null) {
      this.#giveUp(finalError);
      return;
    }
    const turn = this.#turn;
    // what the server took before was smaller than what it refused
    if (code === CLOSE_TOO_LARGE) this.#events.tooLarge(this.#largestSent.id);
    if (!failedAttempt)
      this.#setState(DISCONNECTED, { code, reason: this.#closing?.reason ?? reason });
    const overtaken = turn !== this.#turn; // a listener called connect() or close()
    if (!overtaken) this.#backOff();
  }

  /** Why there is no point in another attempt, or null. Replaces the token where that may help. */
  #finalError(code, failedAttempt) {
    const tokenRefused =
      this.#refused || code === CLOSE_TOKEN || this.#closing?.reason === 'token_expired';
    if (tokenRefused) {
      return this.#replaceToken()
        ? null
        : new RollcallError('UNAUTHENTICATED', 'the server refused the token');
    }
    if (this.#closing?.reconnect_allowed === false) {
      return new RollcallError(
        'CLOSED',
        `the server closed the connection for good: ${this.#closing.reason}`,
      );
    }
    if (failedAttempt) this.#replaceToken();
    return null;
  }

  #replaceToken() {
    if (this.#tokenReplaced || !this.#tokens.renewable) return false;
    this.#tokenReplaced = true;
    this.#tokens.discard();
    return true;
  }

  #backOff() {
    const askedMs = this.#closing?.reconnect_after_ms;
    this.#closing = null;
    const delayMs =
      askedMs >= 0 ? this.#leftOf(askedMs) : backoffDelayMs(this.#attempts++, this.#random);
    this.#cancelTimer = this.#timers.after(delayMs, () => this.#attempt());
    this.#setState(BACKOFF, { delayMs, attempt: this.#attempts });
  }

  #leftOf(askedMs) {
    const passedMs = Math.max(0, this.#timers.now() - this.#closingSinceMs); // the clock may be set
    return Math.max(0, Math.min(askedMs, RECONNECT_AFTER_MAX_MS) - passedMs);
  }

  #giveUp(error) {
    this.#attempts = 0;
    this.#tokenReplaced = false;
    this.#closing = null;
    this.#cancelTimer();
    this.#setState(DISCONNECTED, { final: true, reason: error.code, error });
  }

  /** From here on the old socket can no longer speak to us, however late its close event comes. */
  #detach() {
    this.#turn += 1;
    const socket = this.#socket;
    if (socket === null) return;
    this.#socket = null;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.onerror = () => {};
    socket.close(CLOSE_NORMAL);
  }
}

function parseMessage(text) {
  try {
    const message = JSON.parse(text);
    return typeof message?.type === 'string' ? message : null;
  } catch {
    return null;
  }
}
