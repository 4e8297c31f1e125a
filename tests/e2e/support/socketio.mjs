/**
 * Socket.IO as its users know it: the npm client, every event kept in order until a test asks for it;
 * Engine.IO by hand, for what a proper client would never send; and the npm server, to make sure that
 * what a test expects is what the reference does.
 */
import { createServer, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { once } from 'node:events';
import { Server } from 'socket.io';
import { io } from 'socket.io-client';
import { SOON_MS, devToken, within } from './client.mjs';

/** The three ways a stock client connects. */
export const TRANSPORTS = {
  'polling only': ['polling'],
  'WebSocket only': ['websocket'],
  'polling, then upgraded': ['polling', 'websocket'],
};

export const SEPARATOR = '\x1e';

const clients = new Set();

class SocketClient {
  /** `{name, args}` of what came and was not asked for yet. */
  events = [];

  #waiting = new Set();

  constructor(socket) {
    this.socket = socket;
    socket.onAny((name, ...args) => {
      this.events.push({ name, args });
      for (const look of this.#waiting) look();
    });
    clients.add(this);
  }

  get transport() {
    return this.socket.io.engine.transport.name;
  }

  /** The first argument of the first event not taken yet that has this name and fits. */
  async next(name, fits = () => true, timeoutMs = SOON_MS) {
    let look;
    const found = new Promise((resolve) => {
      look = () => {
        const at = this.events.findIndex((event) => event.name === name && fits(event.args[0]));
        if (at < 0) return;
        this.#waiting.delete(look);
        resolve(this.events.splice(at, 1)[0].args[0]);
      };
    });
    this.#waiting.add(look);
    look();
    const what = () => `${name}, but ${JSON.stringify(this.events).slice(-1000)}`;
    return within(timeoutMs, found, what).finally(() => this.#waiting.delete(look));
  }

  emit(name, ...args) {
    this.socket.emit(name, ...args);
  }

  /** Emits and waits for the acknowledgement. */
  ask(name, ...args) {
    return this.socket.timeout(SOON_MS).emitWithAck(name, ...args);
  }

  /** Everything the server sent before it answers this has come when it returns. */
  async settle() {
    await this.ask('heartbeat', {});
    return this.events;
  }

  /** How often an event came and was not asked for. */
  count(name, fits = () => true) {
    return this.events.filter((event) => event.name === name && fits(event.args[0])).length;
  }

  /** The next `disconnect`, which must come soon. */
  disconnected(timeoutMs = SOON_MS) {
    return within(timeoutMs, happens(this.socket, 'disconnect'), 'disconnect');
  }

  connected(timeoutMs = SOON_MS) {
    return within(timeoutMs, happens(this.socket, 'connect'), 'connect');
  }

  upgraded(timeoutMs = SOON_MS) {
    const { engine } = this.socket.io;
    if (engine.transport.name === 'websocket') return Promise.resolve();
    return within(timeoutMs, happens(engine, 'upgrade'), 'upgrade');
  }

  close() {
    this.socket.disconnect();
  }

  /** The transport breaks, without a word to the server, and the client comes back by itself. */
  cut() {
    this.socket.io.engine.close();
  }
}

/** The first argument of the next event of an emitter of the client's kind. */
export const happens = (emitter, name) => new Promise((resolve) => emitter.once(name, resolve));

/** A client that was asked for, whatever becomes of it. */
export function openSocketIo(server, { token, ...options } = {}) {
  const { namespace = '', ...rest } = options;
  const url = new URL(server.url).origin + namespace;
  return new SocketClient(
    io(url, { forceNew: true, reconnectionDelay: 50, auth: { token }, ...rest }),
  );
}

/** A connected client of a user. */
export async function connectSocketIo(server, user, options = {}) {
  const token = options.token ?? (await devToken(server, user));
  const { device } = options;
  const auth = device === undefined ? { token } : { token, device_id: device };
  const client = openSocketIo(server, { auth, ...options });
  const failed = happens(client.socket, 'connect_error').then((error) => {
    if (!client.socket.connected && !client.socket.active) throw error;
    return client.connected();
  });
  await within(SOON_MS, Promise.race([happens(client.socket, 'connect'), failed]), 'connection');
  failed.catch(() => {});
  return client;
}

/** The error with which a namespace is refused; fails if it is not. */
export function connectError(client) {
  const refused = new Promise((resolve, reject) => {
    client.socket.once('connect_error', resolve);
    client.socket.once('connect', () => reject(new Error('the connection was not refused')));
  });
  return within(SOON_MS, refused, 'connect_error');
}

export function closeAllSocketIo() {
  for (const client of clients) client.close();
  clients.clear();
}

// ---- Engine.IO by hand ----

export const enginePath = (query = {}) =>
  `/socket.io/?${new URLSearchParams({ EIO: '4', transport: 'polling', ...query })}`;

/** One request as a polling client makes it: status, headers and text of the answer. */
export async function engineRequest(server, { method = 'GET', query, body, headers, signal } = {}) {
  const url = new URL(enginePath(query), server.url);
  for (const [name, value] of [...url.searchParams])
    if (value === 'undefined') url.searchParams.delete(name);
  const response = await fetch(url, { method, body, headers, signal });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** The same for a session, on a connection of its own, or of `agent`; a certificate may be anybody's. */
export function engineSend(server, sid, { method = 'GET', body, agent = false } = {}) {
  const url = new URL(enginePath({ sid }), server.url);
  const open = url.protocol === 'https:' ? secureRequest : request;
  return new Promise((resolve, reject) => {
    const sent = open(url, { method, agent, rejectUnauthorized: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

/** A polling session made by hand. */
export class EngineSession {
  constructor(server, open) {
    this.server = server;
    this.open = open;
    this.sid = open.sid;
  }

  static async start(server, query = {}) {
    const { status, text } = await engineRequest(server, { query });
    if (status !== 200 || text[0] !== '0') throw new Error(`no session: ${status} ${text}`);
    return new EngineSession(server, JSON.parse(text.slice(1)));
  }

  get(options = {}) {
    return engineRequest(this.server, { ...options, query: { sid: this.sid, ...options.query } });
  }

  post(body, options = {}) {
    return this.get({ method: 'POST', body, ...options });
  }

  /** The packets of one poll. */
  async poll() {
    const { status, text } = await this.get();
    if (status !== 200) throw new Error(`poll: ${status} ${text}`);
    return text.split(SEPARATOR);
  }

  /** Joins the main namespace; what CONNECT was answered with. */
  async join(token) {
    await this.post(`40${JSON.stringify({ token })}`);
    const packets = [];
    while (!packets.some((packet) => packet.startsWith('40') || packet.startsWith('44')))
      packets.push(...(await this.poll()));
    const answer = packets.find((packet) => packet.startsWith('40') || packet.startsWith('44'));
    this.rest = packets.filter((packet) => packet !== answer);
    return { refused: answer[1] === '4', ...JSON.parse(answer.slice(2)) };
  }

  /** Polls until a packet fits; answers pings meanwhile. */
  async until(fits) {
    for (;;) {
      const packets = this.rest?.length ? this.rest.splice(0) : await this.poll();
      const at = packets.findIndex((packet) => fits(packet));
      if (packets.includes('2')) await this.post('3');
      if (at < 0) continue;
      this.rest = packets.slice(at + 1);
      return packets[at];
    }
  }
}

// ---- the reference ----

/** The npm server, with just enough of an application that protocol tests can run against it. */
export async function startReference(options = {}) {
  const http = createServer((request, response) => response.writeHead(404).end());
  const server = new Server(http, { cors: { origin: true }, ...options });
  server.use((socket, next) =>
    next(socket.handshake.auth.token ? undefined : new Error('a bearer token is needed')),
  );
  server.on('connection', (socket) => {
    socket.on('heartbeat', (_fields, answer) => answer?.({ server_time: new Date().toISOString() }));
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address();
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    token: async (user) => user,
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}
