/**
 * A native client as thin as can be: JSON over the npm `ws` client, every message kept in order
 * until a test asks for it. The connections of a test file are ended with `closeAll()`.
 */
import { WebSocket } from 'ws';

/** How long anything that should come at once may take on a busy machine. */
export const SOON_MS = 10000;

const clients = new Set();
let lastId = 0;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Arrays in arrays, so many levels deep. */
export const nested = (levels) => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

/** `promise`, or an error that says what did not come. */
export function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => {
      const missing = typeof what === 'function' ? what() : what;
      reject(new Error(`within ${ms} ms no ${missing}`));
    }, ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Asks again until `check` gives something true. */
export async function eventually(check, what, ms = SOON_MS) {
  const deadlineMs = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (Date.now() > deadlineMs) throw new Error(`${what} did not come true within ${ms} ms`);
    await sleep(20);
  }
}

const summary = (messages) => JSON.stringify(messages).slice(-1000);

const webSocketUrl = (server, path) => new URL(path, server.url).href.replace(/^http/, 'ws');

class Client {
  /** What came and was not asked for yet. */
  messages = [];

  /** Payloads of pings and pongs, in order. */
  pings = [];
  pongs = [];

  #waiting = [];

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
      for (const look of this.#waiting) look();
    });
    clients.add(this);
  }

  send(message) {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** The first message not taken yet that fits: a type, or a test of the message. */
  next(wanted, timeoutMs = SOON_MS) {
    const fits = typeof wanted === 'string' ? ({ type }) => type === wanted : wanted;
    let look;
    const forget = () => {
      this.#waiting = this.#waiting.filter((other) => other !== look);
    };
    const found = new Promise((resolve) => {
      look = () => {
        const at = this.messages.findIndex(fits);
        if (at < 0) return;
        forget(); // before another message comes in the same packet
        resolve(this.messages.splice(at, 1)[0]);
      };
      this.#waiting.push(look);
      look();
    });
    const what = () => `${wanted}, but ${summary(this.messages)}`;
    return within(timeoutMs, found, what).finally(forget);
  }

  /** Sends a command and waits for what answers it. */
  ask(message, timeoutMs) {
    lastId += 1;
    const id = `e2e-${lastId}`;
    this.send({ id, ...message });
    return this.next((answer) => answer.id === id, timeoutMs);
  }

  /** The next change of one user's presence, of one status if that is given. */
  change(user, status, timeoutMs) {
    return this.next(
      (message) =>
        message.type === 'presence_changed' &&
        message.user_id === user &&
        (status === undefined || message.status === status),
      timeoutMs,
    );
  }

  /** Everything the server sent before it answers this has come when it returns. */
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

  /** The code and reason of the end, which must come soon. */
  ended(timeoutMs = SOON_MS) {
    return within(timeoutMs, this.closed, 'end of the connection');
  }

  close() {
    this.socket.close(1000);
    return this.ended();
  }

  /** Gone without a word, as with a cable pulled. */
  terminate() {
    this.socket.terminate();
  }
}

/**
 * Opens a connection and waits for its greeting, kept as `client.established`.
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

/** A connection that was asked for, whatever becomes of it. */
export function openSocket(url, protocols = [], options = {}) {
  return new Client(new WebSocket(url, protocols, { perMessageDeflate: false, ...options }));
}

/** A token as the page gets it. */
export async function devToken(server, user) {
  const response = await fetch(`${server.url}dev/token`, {
    method: 'POST',
    body: JSON.stringify({ user }),
  });
  return (await response.json()).token;
}

/** The status and error code with which an upgrade is refused; fails if it is not. */
export function refusal(url, protocols = [], options = {}) {
  const socket = new WebSocket(url, protocols, options);
  const refused = new Promise((resolve, reject) => {
    socket.on('error', () => {});
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
  return within(SOON_MS, refused, 'refusal');
}

/** REST with a token, given or of that user: the answer's status, headers and JSON. */
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

/** Lets everybody see a user, or nobody, or contacts only. */
export async function setVisibility(server, user, presence, lastSeen = presence) {
  const { status } = await rest(server, 'PATCH', '/v1/me', {
    user,
    body: { presence_visibility: presence, last_seen_visibility: lastSeen },
  });
  if (status !== 200) throw new Error(`PATCH /v1/me: ${status}`);
}

/** Sends any JSON to a user by the server-side API; how many devices it has. */
export async function deliver(server, token, user, data) {
  const path = `/v1/users/${encodeURIComponent(user)}/deliver`;
  const { status, body } = await rest(server, 'POST', path, { token, body: data });
  if (status !== 202) throw new Error(`deliver: ${status} ${JSON.stringify(body)}`);
  return body.devices;
}

/** The value of a metric, all workers and labels together. */
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
