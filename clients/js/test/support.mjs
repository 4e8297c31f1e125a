/**
 * Test support: virtual time, and a WebSocket whose server side is the test.
 */
import { Rollcall } from '../rollcall.js';

/** Runs everything that waits for settled promises. */
export async function settle() {
  for (let round = 0; round < 20; round += 1) await Promise.resolve();
}

/** A longer delay fires at once, as real timers do. */
const TIMER_OVERFLOW_MS = 2 ** 31 - 1;

export class VirtualTime {
  #nowMs = Date.parse('2026-01-01T00:00:00.000Z');
  #timers = new Map();
  #lastHandle = 0;

  /** No timer fires sooner than this, as in hidden pages. */
  throttleMs = 0;

  /** The same, only for timers that were started by timers. */
  chainedThrottleMs = 0;
  #inTimer = false;

  now = () => this.#nowMs;

  setTimeout = (callback, delayMs) => {
    const handle = ++this.#lastHandle;
    const leastMs = Math.max(this.throttleMs, this.#inTimer ? this.chainedThrottleMs : 0);
    const waitMs = delayMs > TIMER_OVERFLOW_MS ? 1 : Math.max(delayMs, leastMs);
    this.#timers.set(handle, { dueMs: this.#nowMs + waitMs, callback });
    return handle;
  };

  clearTimeout = (handle) => {
    this.#timers.delete(handle);
  };

  get running() {
    return this.#timers.size;
  }

  /** Sets the clock as a user or a time server does; timers are not affected. */
  setClock(byMs) {
    this.#nowMs += byMs;
    for (const timer of this.#timers.values()) timer.dueMs += byMs;
  }

  async advance(ms) {
    const endMs = this.#nowMs + ms;
    await settle();
    for (let next = this.#next(endMs); next !== undefined; next = this.#next(endMs)) {
      const [handle, timer] = next;
      this.#timers.delete(handle);
      this.#nowMs = timer.dueMs;
      this.#inTimer = true;
      timer.callback();
      await settle();
      this.#inTimer = false;
    }
    this.#nowMs = endMs;
  }

  #next(endMs) {
    return [...this.#timers]
      .filter(([, timer]) => timer.dueMs <= endMs)
      .sort((a, b) => a[1].dueMs - b[1].dueMs || a[0] - b[0])[0];
  }
}

/** The client's side of a connection; the `server…` methods act for the server. */
export class FakeWebSocket {
  static CONNECTING = 0;
  static OPEN = 1;
  readyState = 0;
  sent = [];
  closedWith = null;

  constructor(url, protocols) {
    this.url = url;
    this.protocols = protocols;
  }

  get token() {
    return this.protocols[1].slice('bearer.'.length);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close(code) {
    this.closedWith = code;
    this.readyState = 3;
  }

  serverOpens() {
    this.readyState = 1;
    this.onopen?.();
  }

  serverSends(message) {
    this.onmessage?.({ data: typeof message === 'string' ? message : JSON.stringify(message) });
  }

  serverCloses(code = 1006, reason = '') {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }

  serverRefuses(status) {
    this.onerror?.({ message: `Unexpected server response: ${status}` });
    this.serverCloses();
  }

  /** Frames of one type, in the order they were sent. */
  ofType(type) {
    return this.sent.filter((frame) => frame.type === type);
  }

  reply(frame, fields) {
    this.serverSends({ id: frame.id, ...fields });
  }
}

const ESTABLISHED = {
  type: 'connection_established',
  conn_id: 'conn_1',
  server_id: 'gw-001',
  user_id: 'alice',
  heartbeat_interval_seconds: 5,
  expiry_window_seconds: 15,
};

/**
 * A client, its virtual time, its sockets and the log of its states. `random` 0.5 means no jitter.
 */
export function world(options = {}) {
  const time = new VirtualTime();
  const sockets = [];
  class WebSocket extends FakeWebSocket {
    constructor(url, protocols) {
      super(url, protocols);
      sockets.push(this);
    }
  }
  const client = new Rollcall({
    url: 'ws://server.test',
    token: options.getToken ? undefined : 'static',
    deviceId: 'device_1',
    WebSocket,
    random: () => 0.5,
    timers: time,
    activity: { page: undefined },
    ...options,
  });
  const states = [];
  const changes = [];
  const errors = [];
  client.on('state', (change) => {
    states.push(change.state);
    changes.push(change);
  });
  client.on('error', (error) => errors.push(error));
  return {
    client,
    time,
    sockets,
    states,
    changes,
    errors,
    get socket() {
      return sockets.at(-1);
    },
    /** Answers the handshake of the newest socket. */
    async accept(fields = {}) {
      await settle();
      this.socket.serverOpens();
      this.socket.serverSends({
        ...ESTABLISHED,
        server_time: new Date(time.now()).toISOString(),
        ...fields,
      });
      await settle();
    },
    async ready() {
      const connected = client.connect();
      await this.accept();
      await connected;
    },
    /** Waits for the back-off and accepts the next connection. */
    async reconnect() {
      await time.advance(changes.at(-1).delayMs);
      await this.accept();
    },
  };
}

/** A token that expires at `ms`. */
export function tokenEndingAt(ms, name = 'token') {
  const payload = Buffer.from(JSON.stringify({ sub: 'alice', exp: ms / 1000, name })).toString(
    'base64url',
  );
  return `e30.${payload}.signature`;
}

/** Promises the code with which `promise` was rejected. */
export async function codeOf(promise) {
  return promise.then(
    () => 'resolved',
    (error) => error.code,
  );
}
