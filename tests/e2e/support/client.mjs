/**
 * A thin native client: JSON over the npm `ws` client. It keeps every message in order until a test
 * takes it. `closeAll()` ends all connections of a test file.
 */
import { WebSocket } from 'ws';

/** Time limit, on a busy machine, for anything that should happen at once. */
export const SOON_MS = 30000;

const clients = new Set();
let lastId = 0;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** An array nested this many levels deep. */
export const nested = (levels) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

/** Settles as `promise` does, or rejects after `ms` with an error that names what was awaited. */
export function within(ms, promise, what) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => {
      const awaited = typeof what === 'function' ? what() : what;
      reject(new Error(`timed out after ${ms} ms, waiting for: ${awaited}`));
    }, ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}

/** Repeats `check` until its result is truthy, and returns that result. */
export async function eventually(check, what, ms = SOON_MS) {
  const deadlineMs = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > deadlineMs) throw new Error(`timed out after ${ms} ms, waiting for: ${what}`);
    await sleep(20);
  }
}

const summary = (messages) => JSON.stringify(messages).slice(-1000);

const webSocketUrl = (server, path) => new URL(path, server.url).href.replace(/^http/, 'ws');

class Client {
  /** Messages that no test has taken yet. */
  messages = [];

  /** Payloads of pings and pongs, in order. */
  pings = [];
  pongs = [];

  #waiters = [];

  constructor(socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    socket.on('error', () => {});
    socket.on('ping', (data) => this.pings.push(data.toString()));
    socket.on('pong', (data) => this.pongs.push(data.toString()));
    socket.on('message', (data) => {
      this.messages.push(JSON.parse(data));
      for (const tryTake of this.#waiters) tryTake();
    });
    clients.add(this);
  }

  send(message) {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** Takes the first message that matches `wanted`: a type, or a predicate. Waits for it if it has not arrived. */
  next(wanted, timeoutMs = SOON_MS) {
    const matches = typeof wanted === 'string' ? ({ type }) => type === wanted : wanted;
    let tryTake;
    const stopWaiting = () => {
      this.#waiters = this.#waiters.filter((waiter) => waiter !== tryTake);
    };
    const found = new Promise((resolve) => {
      tryTake = () => {
        const at = this.messages.findIndex(matches);
        if (at < 0) return;
        stopWaiting(); // now, because one packet may carry several messages
        resolve(this.messages.splice(at, 1)[0]);
      };
      this.#waiters.push(tryTake);
      tryTake();
    });
    const what = () => `${wanted}; messages not taken: ${summary(this.messages)}`;
    return within(timeoutMs, found, what).finally(stopWaiting);
  }

  /** Sends a command and waits for its reply. */
  ask(message, timeoutMs) {
    lastId += 1;
    const id = `e2e-${lastId}`;
    this.send({ id, ...message });
    return this.next((answer) => answer.id === id, timeoutMs);
  }

  /** Takes the next change of a user's presence, to this status if one is given. */
  nextChange(user, status, timeoutMs) {
    return this.next(
      (message) =>
        message.type === 'presence_changed' &&
        message.user_id === user &&
        (status === undefined || message.status === status),
      timeoutMs,
    );
  }

  /** Waits until everything the server has sent so far has arrived; returns the messages not taken. */
  async settle() {
    await this.ask({ type: 'heartbeat' });
    return this.messages;
  }

  async subscribe(...users) {
    return (await this.ask({ type: 'subscribe_presence', user_ids: users })).presences;
  }

  async query(...users) {
    return (await this.ask({ type: 'query_presence', user_ids: users })).presences;
  }

  /** Waits until the connection is closed; returns code and reason. */
  ended(timeoutMs = SOON_MS) {
    return within(timeoutMs, this.closed, 'end of the connection');
  }

  close() {
    this.socket.close(1000);
    return this.ended();
  }

  /** Ends the connection without a close frame, like a pulled cable. */
  terminate() {
    this.socket.terminate();
  }
}

/**
 * Opens a connection and waits for `connection_established`, which it keeps as `client.established`.
 *
 * @param {{url: string}} server
 * @param {string} user
 * @param {{token?: string, device?: string, path?: string, ws?: object}} [options]
 */
export async function connect(server, user, { token, device, path = 'v1/ws', ws = {} } = {}) {
  const query = device === undefined ? '' : `?device_id=${encodeURIComponent(device)}`;
  const bearer = token ?? (await devToken(server, user));
  const client = openSocket(webSocketUrl(server, path + query), [], {
    headers: { Authorization: `Bearer ${bearer}` },
    ...ws,
  });
  client.established = await client.next('connection_established');
  return client;
}

/** Starts to open a connection; it may still be refused. */
export function openSocket(url, protocols = [], options = {}) {
  return new Client(new WebSocket(url, protocols, { perMessageDeflate: false, ...options }));
}

/** A token from `/dev/token`, as the page gets it. */
export async function devToken(server, user) {
  const response = await fetch(`${server.url}dev/token`, {
    method: 'POST',
    body: JSON.stringify({ user }),
  });
  return (await response.json()).token;
}

/** Opens a WebSocket that the server must refuse; returns status, headers and error. */
export function refusal(url, protocols = [], options = {}) {
  const socket = new WebSocket(url, protocols, options);
  const refused = new Promise((resolve, reject) => {
    socket.on('error', reject); // without effect after the answer
    socket.on('open', () => {
      socket.terminate();
      reject(new Error('the upgrade was not refused'));
    });
    socket.on('unexpected-response', async (request, response) => {
      let text = '';
      for await (const piece of response) text += piece;
      request.destroy();
      const body = text === '' ? {} : JSON.parse(text);
      resolve({ status: response.statusCode, headers: response.headers, ...body });
    });
  });
  return within(SOON_MS, refused, 'refusal of the upgrade');
}

/** Sends a REST request, with this token or one of this user; returns status, headers and parsed body. */
export async function rest(server, method, path, { token, user, body } = {}) {
  const bearer = token ?? (user === undefined ? undefined : await devToken(server, user));
  const response = await fetch(new URL(path, server.url), {
    method,
    headers: bearer === undefined ? {} : { Authorization: `Bearer ${bearer}` },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  const isJson = /json/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? JSON.parse(text) : text,
  };
}

/** Sets who may see a user: `everyone`, `contacts_only` or `nobody`. */
export async function setVisibility(server, user, presence, lastSeen = presence) {
  const { status } = await rest(server, 'PATCH', '/v1/me', {
    user,
    body: { presence_visibility: presence, last_seen_visibility: lastSeen },
  });
  if (status !== 200) throw new Error(`PATCH /v1/me: ${status}`);
}

/** Sends JSON to a user by the server-side API; returns the user's number of devices. */
export async function deliver(server, token, user, data) {
  const path = `/v1/users/${encodeURIComponent(user)}/deliver`;
  const { status, body } = await rest(server, 'POST', path, { token, body: data });
  if (status !== 202) throw new Error(`deliver: ${status} ${JSON.stringify(body)}`);
  return body.devices;
}

/** The value of a metric, summed over all workers and labels. */
export async function metric(server, name) {
  const { body } = await rest(server, 'GET', '/metrics');
  const pattern = new RegExp(`^rollcall_${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm');
  const samples = [...body.matchAll(pattern)];
  if (samples.length === 0) throw new Error(`there is no metric ${name}`);
  return samples.reduce((sum, [, value]) => sum + Number(value), 0);
}

export function closeAll() {
  for (const client of clients) client.terminate();
  clients.clear();
}
