/**
 * The npm client of Socket.IO. It keeps every event in order until a test takes it. Packets that a proper
 * client never sends are made with engine.mjs.
 */
import assert from 'node:assert/strict';
import { io } from 'socket.io-client';
import msgpackParser from 'socket.io-msgpack-parser';
import { SOON_MS, devToken, within } from './client.mjs';

/** The three ways in which an unmodified client connects. */
export const TRANSPORTS = {
  'polling only': ['polling'],
  'WebSocket only': ['websocket'],
  'polling, then upgraded': ['polling', 'websocket'],
};

/** The two parsers of the official clients. */
export const PARSERS = { JSON: undefined, MessagePack: msgpackParser };

const clients = new Set();

class SocketClient {
  /** Events that no test has taken yet, as `{name, args}`. */
  events = [];

  #waiters = new Set();

  constructor(socket) {
    this.socket = socket;
    socket.onAny((name, ...args) => {
      this.events.push({ name, args });
      for (const tryTake of this.#waiters) tryTake();
    });
    clients.add(this);
  }

  get transport() {
    return this.socket.io.engine.transport.name;
  }

  /** Takes the first event that has this name and matches; returns its first argument. */
  async next(name, matches = () => true, timeoutMs = SOON_MS) {
    let tryTake;
    const found = new Promise((resolve) => {
      tryTake = () => {
        const at = this.events.findIndex((event) => event.name === name && matches(event.args[0]));
        if (at < 0) return;
        this.#waiters.delete(tryTake);
        resolve(this.events.splice(at, 1)[0].args[0]);
      };
    });
    this.#waiters.add(tryTake);
    tryTake();
    const what = () => `${name}; events not taken: ${JSON.stringify(this.events).slice(-1000)}`;
    return within(timeoutMs, found, what).finally(() => this.#waiters.delete(tryTake));
  }

  emit(name, ...args) {
    this.socket.emit(name, ...args);
  }

  /** Emits and waits for the acknowledgement. */
  ask(name, ...args) {
    return this.socket.timeout(SOON_MS).emitWithAck(name, ...args);
  }

  /** Waits until everything the server has sent so far has arrived; returns the events not taken. */
  async settle() {
    await this.ask('heartbeat', {});
    return this.events;
  }

  /** How many events of this name that match have not been taken. */
  count(name, matches = () => true) {
    return this.events.filter((event) => event.name === name && matches(event.args[0])).length;
  }

  /** Waits for the next `disconnect`; returns its reason. */
  disconnected(timeoutMs = SOON_MS) {
    return within(timeoutMs, nextEvent(this.socket, 'disconnect'), 'disconnect');
  }

  connected(timeoutMs = SOON_MS) {
    return within(timeoutMs, nextEvent(this.socket, 'connect'), 'connect');
  }

  upgraded(timeoutMs = SOON_MS) {
    const { engine } = this.socket.io;
    if (engine.transport.name === 'websocket') return Promise.resolve();
    return within(timeoutMs, nextEvent(engine, 'upgrade'), 'upgrade');
  }

  close() {
    this.socket.disconnect();
  }

  /** Closes the transport without leaving the namespace; the client reconnects by itself. */
  cut() {
    this.socket.io.engine.close();
  }
}

/** Expects that an event with this value is refused, with and without a callback, and that the connection stays. */
export async function expectRefused(client, value) {
  const { id } = client.socket;
  const fields = { chat_id: 'x', client_message_id: 'y', body: value };
  assert.equal((await client.ask('send_message', fields)).code, 'INVALID_MESSAGE');
  client.emit('send_message', fields);
  assert.equal((await client.next('error')).code, 'INVALID_MESSAGE');
  assert.ok('server_time' in (await client.ask('heartbeat', {})));
  assert.equal(client.socket.id, id);
}

/** The first argument of an emitter's next event of this name. */
export const nextEvent = (emitter, name) => new Promise((resolve) => emitter.once(name, resolve));

/** Starts to connect a client; it may still be refused. */
export function openSocketIo(server, { token, ...options } = {}) {
  const { namespace = '', ...rest } = options;
  const url = new URL(server.url).origin + namespace;
  return new SocketClient(
    io(url, { forceNew: true, reconnectionDelay: 50, auth: { token }, ...rest }),
  );
}

/** Connects a client of a user. */
export async function connectSocketIo(server, user, options = {}) {
  const token = options.token ?? (await devToken(server, user));
  const { device } = options;
  const auth = device === undefined ? { token } : { token, device_id: device };
  const client = openSocketIo(server, { auth, ...options });
  const failed = nextEvent(client.socket, 'connect_error').then((error) => {
    if (!client.socket.connected && !client.socket.active) throw error;
    return client.connected();
  });
  await within(SOON_MS, Promise.race([nextEvent(client.socket, 'connect'), failed]), 'connection');
  failed.catch(() => {});
  return client;
}

/** Waits until the server refuses the namespace; returns the error. */
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
