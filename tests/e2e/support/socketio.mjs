/**
 * Socket.IO as its users know it: the npm client, every event kept in order until a test asks for it. What a
 * proper client would never send is made by hand in engine.mjs.
 */
import assert from 'node:assert/strict';
import { io } from 'socket.io-client';
import msgpackParser from 'socket.io-msgpack-parser';
import { SOON_MS, devToken, within } from './client.mjs';

/** The three ways a stock client connects. */
export const TRANSPORTS = {
  'polling only': ['polling'],
  'WebSocket only': ['websocket'],
  'polling, then upgraded': ['polling', 'websocket'],
};

/** The two parsers a stock client comes with. */
export const PARSERS = { JSON: undefined, MessagePack: msgpackParser };

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

/** An event with this value in it is refused, with a callback and without, and the connection stays. */
export async function expectRefused(client, value) {
  const { id } = client.socket;
  const fields = { chat_id: 'x', client_message_id: 'y', body: value };
  assert.equal((await client.ask('send_message', fields)).code, 'INVALID_MESSAGE');
  client.emit('send_message', fields);
  assert.equal((await client.next('error')).code, 'INVALID_MESSAGE');
  assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.equal(client.socket.id, id);
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
