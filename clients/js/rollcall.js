/**
 * Rollcall's client for browsers and Node: presence, chats and calls over one connection that looks
 * after itself.
 *
 *   const client = new Rollcall({ url: 'wss://example.org', getToken });
 *   client.on('presence', (presence) => …);
 *   await client.connect();
 *   await client.subscribePresence(['alice', 'bob']);
 *
 * The application says once what it wants: whom to watch, which chats are open, what to send. The
 * client keeps it true over lost connections (link.js has the states), until close().
 *
 *   session.js     the life of a connection, and restoring it
 *   link.js        one socket at a time, back-off, tokens at the handshake
 *   heartbeat.js   signs of life          activity.js   is somebody there
 *   requests.js    replies by id          outbox.js     messages until acknowledged
 *   presence.js    what is known of whom  chats.js      every message once, in order
 *   token.js       tokens and their renewal
 *
 * Events: `state`, `presence`, `message`, `chat`, `typing`, `error`, and every other push of the
 * server under its own name (`call_incoming`, `delivery`, `contact_request`, …). Fields of the
 * protocol keep their names.
 */
import { Emitter } from './emitter.js';
import { RollcallError } from './error.js';
import { READY } from './link.js';
import { Session } from './session.js';
import { Timers } from './timers.js';
import { TokenSource } from './token.js';
import { endpointUrl, uniqueId } from './util.js';

export { RollcallError };

export class Rollcall {
  #emitter = new Emitter();
  #tokens;
  #session;

  constructor({
    url,
    token,
    getToken,
    deviceId,
    WebSocket = globalThis.WebSocket,
    random = Math.random,
    timers,
    activity = {},
  }) {
    if (!WebSocket)
      throw new TypeError('there is no WebSocket here: pass one, such as that of the ws package');
    if (token === undefined && getToken === undefined)
      throw new TypeError('token or getToken is needed');
    this.deviceId = deviceId ?? uniqueId();
    const clock = new Timers(timers);
    this.#tokens = new TokenSource({ token, getToken, now: () => clock.now() });
    this.#session = new Session({
      url: endpointUrl(url, this.deviceId),
      tokens: this.#tokens,
      WebSocket,
      timers: clock,
      random,
      activity,
      emitter: this.#emitter,
    });
  }

  // --- Connection -------------------------------------------------------------------------------

  /** One of the states of link.js. */
  get state() {
    return this.#session.state;
  }

  /** The user the server took the token for; null before the first connection. */
  get userId() {
    return this.#session.userId;
  }

  get connectionId() {
    return this.#session.connectionId;
  }

  /** Promises the first READY from now. Called while waiting to reconnect, it reconnects at once. */
  connect() {
    if (this.state === READY) return Promise.resolve();
    return this.#session.connect();
  }

  /** Leaves. What is still waiting fails with CLOSED. */
  close() {
    this.#session.close();
  }

  on(type, listener) {
    return this.#emitter.on(type, listener);
  }

  once(type, listener) {
    return this.#emitter.once(type, listener);
  }

  off(type, listener) {
    this.#emitter.off(type, listener);
  }

  /** true or false overrules what the page's visibility and input say; null leaves it to them. */
  setActive(active) {
    this.#session.activity.overrule(active);
  }

  /** Puts a new token on the open connection; without one, asks getToken. */
  async refreshToken(token) {
    const fresh = token ?? (await this.#tokens.fetch());
    await this.request('refresh_token', { token: fresh }, { idempotent: true });
    this.#tokens.replace(fresh);
  }

  /** Sends any command of the protocol and promises its reply. */
  request(type, fields, options) {
    return this.#session.requests.request(type, fields, options);
  }

  // --- Presence ---------------------------------------------------------------------------------

  /** What is known of a user, or undefined. */
  presence(userId) {
    return this.#session.presence.get(userId);
  }

  /** Watches users until unsubscribePresence(), over reconnects too. Promises their presences. */
  async subscribePresence(userIds) {
    const added = this.#session.presence.want(userIds);
    try {
      return await this.#session.snapshot('subscribe_presence', userIds);
    } catch (error) {
      if (!error.retryable) this.#session.presence.unwant(added);
      throw error;
    }
  }

  async unsubscribePresence(userIds) {
    this.#session.presence.unwant(userIds);
    await this.request('unsubscribe_presence', { user_ids: userIds }, { idempotent: true });
  }

  queryPresence(userIds) {
    return this.#session.snapshot('query_presence', userIds);
  }

  // --- Chats ------------------------------------------------------------------------------------

  /**
   * Opens a chat until closeChat(), over reconnects too. Its messages come as `message` events from
   * `afterSequence` on, or from now on. Promises the chat's snapshot.
   */
  async openChat(chatId, { afterSequence } = {}) {
    this.#session.chats.open(chatId, afterSequence);
    try {
      return await this.#session.enterChat(chatId);
    } catch (error) {
      if (!error.retryable) this.#session.chats.close(chatId);
      throw error;
    }
  }

  async closeChat(chatId) {
    this.#session.chats.close(chatId);
    await this.request('close_chat', { chat_id: chatId }, { idempotent: true });
  }

  /** Says that the user is typing, or no longer. Only worth saying now: false if not connected. */
  typing(chatId, typing = true) {
    if (this.state !== READY) return false;
    return this.#session.link.send({
      type: typing ? 'typing_start' : 'typing_stop',
      chat_id: chatId,
    });
  }

  /** Promises the acknowledgement, however many connections it takes. */
  sendMessage(chatId, body, { clientMessageId = uniqueId() } = {}) {
    return this.#session.outbox.add(chatId, clientMessageId, body);
  }

  /** Catches up with a chat by `message` events. Promises the last sequence. */
  sync(chatId) {
    return this.#session.chats.sync(chatId);
  }

  /** One page of a chat's past, for scrolling back: nothing is given out as events. */
  fetchMessages(chatId, afterSequence, limit) {
    return this.request(
      'sync_request',
      { chat_id: chatId, after_sequence: afterSequence, limit },
      { idempotent: true },
    );
  }

  /** Tells the server up to where this device has it. */
  ack(chatId, sequence) {
    return this.#session.link.send({ type: 'ack', chat_id: chatId, sequence });
  }

  // --- Calls ------------------------------------------------------------------------------------

  /** Rings a contact; promises `{call_id}`. */
  requestCall(to, { callId } = {}) {
    return this.request('call_request', { to, call_id: callId });
  }

  acceptCall(callId) {
    return this.request('call_accept', { call_id: callId });
  }

  rejectCall(callId) {
    return this.request('call_reject', { call_id: callId });
  }

  endCall(callId) {
    return this.request('call_end', { call_id: callId });
  }

  /** Passes an offer, an answer or a candidate to the other side. False if not connected. */
  signal(callId, data) {
    return this.#session.link.send({ type: 'call_signal', call_id: callId, data });
  }
}
