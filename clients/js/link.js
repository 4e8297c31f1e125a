/**
 * The connection that is replaced when it is lost: one WebSocket at a time.
 *
 *   DISCONNECTED --connect()--> RECONNECTING --socket open--> CONNECTED
 *   RECONNECTING --failure--> BACKOFF --delay over, or connect()--> RECONNECTING
 *   CONNECTED --connection_established--> SYNCING --markReady()--> READY
 *   CONNECTED | SYNCING | READY --connection_closing--> CLOSING --socket closed--> DISCONNECTED
 *   CONNECTED | SYNCING | READY --socket closed--> DISCONNECTED
 *   DISCONNECTED --unless it is final--> BACKOFF
 *   any --close(), or the server does not allow reconnecting--> DISCONNECTED
 *
 * The delays start at 1 s again after READY has lasted for a while, so that the client does not
 * connect every second to a server that accepts connections and closes them. A close by the server
 * is final only with `reconnect_allowed: false`, or when the server has refused a fresh token too.
 * A refused token (401, 4001, `token_expired`) is replaced once per outage. A browser does not tell
 * why a handshake failed: it may have been a 401, so the token is replaced once then too; if the
 * server refuses that one for certain, it is replaced once more.
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

/**
 * A draining server closes its connections one by one; the client does not wait longer than this.
 */
export const CLOSING_TIMEOUT_MS = 60000;

/** After this time in READY the back-off starts at 1 s again. */
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
  #tokenSuspected = false;
  #closing = null;
  #closingSinceMs = 0;
  #refused = false;
  #largestSent = NONE_SENT;
  #generation = 0;
  #cancelTimer = () => {};

  /**
   * `events` are callbacks: state(change), established(message), message(message), error(error),
   * and tooLarge(id) with the id of the frame for which the server closed the connection. After a
   * change to DISCONNECTED with `final` there is no other attempt.
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

  /** Connects, or ends a back-off early. Does nothing if there is a connection or an attempt. */
  connect() {
    if (this.#state === DISCONNECTED || this.#state === BACKOFF) this.#attempt();
  }

  /** Disconnects until connect() is called again. A caller that waits for READY gets `error`. */
  close(error) {
    this.#detach();
    if (this.#state !== DISCONNECTED) this.#stop(error);
  }

  /** Ends the connection because it is dead. */
  drop(reason) {
    if (this.#socket !== null) this.#onLost({ reason });
  }

  markReady() {
    this.#tokenReplaced = false;
    this.#tokenSuspected = false;
    this.#cancelTimer = this.#timers.after(STABLE_AFTER_MS, () => {
      this.#attempts = 0;
    });
    this.#setState(READY);
  }

  /** Returns false if there is no open socket. */
  send(frame) {
    if (this.#socket?.readyState !== OPEN) return false;
    const text = JSON.stringify(frame);
    const { length: bytes } = new TextEncoder().encode(text);
    if (bytes > this.#largestSent.bytes) this.#largestSent = { id: frame.id, bytes };
    this.#socket.send(text);
    return true;
  }

  /** Every change of state goes through here. */
  #setState(next, detail = {}) {
    const previous = this.#state;
    if (!TRANSITIONS[previous].includes(next))
      throw new Error(`invalid transition from ${previous} to ${next}`);
    this.#state = next;
    this.#events.state({ state: next, previous, ...detail });
  }

  async #attempt() {
    const generation = ++this.#generation;
    this.#cancelTimer();
    this.#setState(RECONNECTING);
    this.#cancelTimer = this.#timers.after(HANDSHAKE_TIMEOUT_MS, () =>
      this.#onLost({ reason: 'handshake_timeout' }),
    );
    try {
      const token = await this.#tokens.current();
      if (generation === this.#generation) this.#openSocket(token);
    } catch (error) {
      if (generation === this.#generation) this.#onAttemptFailed(error);
    }
  }

  /** If getToken refuses a token, the client stops; any other failure is retried. */
  #onAttemptFailed(error) {
    if (error.code === 'UNAUTHENTICATED') {
      this.#stop(error);
      return;
    }
    this.#events.error(error);
    this.#onLost({ reason: 'no_token_or_socket' });
  }

  #openSocket(token) {
    const socket = new this.#WebSocket(this.#url, [PROTOCOL, `bearer.${token}`]);
    this.#socket = socket;
    this.#closing = null;
    this.#refused = false;
    this.#largestSent = NONE_SENT;
    socket.onopen = () => this.#setState(CONNECTED);
    socket.onmessage = (event) => this.#onMessage(event.data);
    socket.onerror = (event) => {
      this.#refused ||= /\b401\b/.test(event?.message ?? '');
    };
    socket.onclose = (event) => this.#onLost({ code: event.code, reason: event.reason });
  }

  #onMessage(text) {
    const message = parseMessage(text);
    if (message === null) {
      this.#events.error(
        new RollcallError('INVALID_MESSAGE', 'the server sent data that is not a message'),
      );
    } else if (message.type === 'connection_established' && this.#state === CONNECTED) {
      this.#cancelTimer();
      this.#setState(SYNCING);
      this.#events.established(message);
    } else {
      if (message.type === 'connection_closing') this.#onClosing(message);
      this.#events.message(message);
    }
  }

  /** The time in `reconnect_after_ms` includes the time until the server closes. */
  #onClosing(message) {
    this.#closing = message;
    this.#closingSinceMs = this.#timers.now();
    if (this.#state === CLOSING) return;
    this.#cancelTimer();
    this.#cancelTimer = this.#timers.after(CLOSING_TIMEOUT_MS, () => this.drop('closing_timeout'));
    this.#setState(CLOSING, { reason: message.reason });
  }

  /** Every end of a connection or of an attempt goes through here. */
  #onLost({ code, reason }) {
    const failedAttempt = this.#state === RECONNECTING;
    const finalError = this.#finalError(code, failedAttempt);
    this.#cancelTimer();
    this.#detach();
    if (finalError !== null) {
      this.#stop(finalError);
      return;
    }
    const generation = this.#generation;
    // The refused frame is the largest one, because the server accepted all others.
    if (code === CLOSE_TOO_LARGE) this.#events.tooLarge(this.#largestSent.id);
    if (!failedAttempt)
      this.#setState(DISCONNECTED, { code, reason: this.#closing?.reason ?? reason });
    const superseded = generation !== this.#generation; // a listener called connect() or close()
    if (!superseded) this.#backOff();
  }

  /** Returns why the client must stop, or null. Replaces the token where that may help. */
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
    if (failedAttempt) this.#suspectToken();
    return null;
  }

  #replaceToken() {
    if (this.#tokenReplaced || !this.#tokens.renewable) return false;
    this.#tokenReplaced = true;
    this.#tokens.discard();
    return true;
  }

  /** The network was down, or the server refused the token: a browser cannot tell. */
  #suspectToken() {
    if (this.#tokenSuspected || this.#tokenReplaced) return;
    this.#tokenSuspected = true;
    this.#tokens.discard();
  }

  #backOff() {
    const askedMs = this.#closing?.reconnect_after_ms;
    this.#closing = null;
    const passedMs = Math.max(0, this.#timers.now() - this.#closingSinceMs); // the clock may be set
    const delayMs =
      askedMs >= 0
        ? Math.max(0, Math.min(askedMs, RECONNECT_AFTER_MAX_MS) - passedMs)
        : backoffDelayMs(this.#attempts++, this.#random);
    this.#cancelTimer = this.#timers.after(delayMs, () => this.#attempt());
    this.#setState(BACKOFF, { delayMs, attempt: this.#attempts });
  }

  #stop(error) {
    this.#attempts = 0;
    this.#tokenReplaced = false;
    this.#tokenSuspected = false;
    this.#closing = null;
    this.#cancelTimer();
    this.#setState(DISCONNECTED, { final: true, reason: error.code, error });
  }

  /** Removes the handlers, because the old socket's close event may arrive much later. */
  #detach() {
    this.#generation += 1;
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
