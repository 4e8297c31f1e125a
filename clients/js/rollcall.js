/**
 * Rollcall's client for browsers and Node: presence, chats and calls over one connection that
 * reconnects by itself.
 *
 *   const client = new Rollcall({ url: 'wss://example.org', getToken });
 *   client.on('presence', (presence) => …);
 *   await client.connect();
 *   await client.subscribePresence(['alice', 'bob']);
 *
 * The application subscribes to users, opens chats and sends messages once. The client restores and
 * repeats them after lost connections (link.js has the states), until close().
 *
 *   session.js     the life of a connection, and restoring its state
 *   link.js        one socket at a time, back-off, tokens at the handshake
 *   heartbeat.js   heartbeats                   activity.js   whether the user is active
 *   requests.js    requests and their replies   outbox.js     messages until acknowledged
 *   presence.js    cached presences             chats.js      every message once, in order
 *   token.js       tokens and their renewal     message_list.js   the messages of a chat as a list
 *   api.js         the HTTP API, `client.api`   http.js           its requests
 *
 * Events: `state`, `presence`, `message`, `chat`, `typing`, `error`, and every other push of the
 * server under its own name (`call_incoming`, `contact_request`, …); a `delivery` with an event name
 * also comes as `delivery:NAME`. Fields of the protocol keep their names.
 */
import { devToken, RollcallApi } from './api.js';
import { Emitter } from './emitter.js';
import { RollcallError } from './error.js';
import { READY } from './link.js';
import { MessageList } from './message_list.js';
import { Session } from './session.js';
import { Timers } from './timers.js';
import { TokenSource } from './token.js';
import { endpointUrl, uniqueId } from './util.js';

export { devToken, MessageList, RollcallApi, RollcallError };

export class Rollcall {
  /** The HTTP API: contacts, chats, history, settings, blocks, call history (api.js). */
  api;
  deviceId;
  #emitter = new Emitter();
  #tokens;
  #session;

  constructor({
    url,
    token,
    getToken,
    deviceId,
    WebSocket = globalThis.WebSocket,
    fetch,
    random = Math.random,
    timers,
    activity = {},
  }) {
    if (!WebSocket)
      throw new TypeError('there is no global WebSocket: pass one, such as that of the ws package');
    if (token === undefined && getToken === undefined)
      throw new TypeError('token or getToken is needed');
    this.deviceId = deviceId ?? uniqueId();
    const clock = new Timers(timers);
    this.#tokens = new TokenSource({ token, getToken, now: () => clock.now() });
    this.api = new RollcallApi({ url, tokens: this.#tokens, fetch, timers });
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

  /** The user of the token, as the server reports it; null before the first connection. */
  get userId() {
    return this.#session.userId;
  }

  get connectionId() {
    return this.#session.connectionId;
  }

  /** Promises the next READY. During a back-off it reconnects at once. */
  connect() {
    if (this.state === READY) return Promise.resolve();
    return this.#session.connect();
  }

  /** Disconnects. Pending requests and messages fail with CLOSED. */
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

  /** true or false overrides the page's visibility and input; null uses them again. */
  setActive(active) {
    this.#session.activity.override(active);
  }

  /** Sends a new token over the open connection; without an argument, getToken() returns it. */
  async refreshToken(token) {
    const fresh = token ?? (await this.#tokens.fetch());
    await this.request('refresh_token', { token: fresh }, { idempotent: true });
    this.#tokens.replace(fresh);
  }

  /** Sends an event of the application to its server; promises the data of the acknowledgement. */
  async sendEvent(name, data = null, options) {
    return (await this.request('event', { name, data }, options)).data;
  }

  /** Sends any command of the protocol and promises its reply. */
  request(type, fields, options) {
    return this.#session.requests.request(type, fields, options);
  }

  // --- Presence ---------------------------------------------------------------------------------

  /** The last known presence of a user, or undefined. */
  presence(userId) {
    return this.#session.presence.get(userId);
  }

  /** Subscribes until unsubscribePresence(), also after reconnects. Promises their presences. */
  async subscribePresence(userIds) {
    const added = this.#session.presence.subscribe(userIds);
    try {
      return await this.#session.requestPresences('subscribe_presence', userIds);
    } catch (error) {
      if (!error.retryable) this.#session.presence.unsubscribe(added);
      throw error;
    }
  }

  async unsubscribePresence(userIds) {
    this.#session.presence.unsubscribe(userIds);
    await this.request('unsubscribe_presence', { user_ids: userIds }, { idempotent: true });
  }

  queryPresence(userIds) {
    return this.#session.requestPresences('query_presence', userIds);
  }

  // --- Chats ------------------------------------------------------------------------------------

  /**
   * Opens a chat until closeChat(), also after reconnects. Its messages arrive as `message` events,
   * those after `afterSequence`, else those from now on. Promises the chat's snapshot.
   */
  async openChat(chatId, { afterSequence } = {}) {
    this.#session.chats.open(chatId, afterSequence);
    try {
      return await this.#session.openChat(chatId);
    } catch (error) {
      if (!error.retryable) this.#session.chats.close(chatId);
      throw error;
    }
  }

  async closeChat(chatId) {
    this.#session.chats.close(chatId);
    await this.request('close_chat', { chat_id: chatId }, { idempotent: true });
  }

  /** The messages of a chat as a list that merges history and pushes (message_list.js). */
  messageList(chatId, options) {
    return new MessageList(this, chatId, options);
  }

  /** Reports that the user types or has stopped. Returns false if not connected; it is not kept. */
  typing(chatId, typing = true) {
    if (this.state !== READY) return false;
    return this.#session.link.send({
      type: typing ? 'typing_start' : 'typing_stop',
      chat_id: chatId,
    });
  }

  /** Promises the acknowledgement; repeats the message over as many connections as needed. */
  sendMessage(chatId, body, { clientMessageId = uniqueId() } = {}) {
    return this.#session.outbox.add(chatId, clientMessageId, body);
  }

  /** Fetches missed messages of a chat as `message` events. Promises the last sequence. */
  sync(chatId) {
    return this.#session.chats.sync(chatId);
  }

  /** Promises one page of a chat's history, for scrolling back; there are no events for it. */
  fetchMessages(chatId, afterSequence, limit) {
    return this.request(
      'sync_request',
      { chat_id: chatId, after_sequence: afterSequence, limit },
      { idempotent: true },
    );
  }

  /**
   * Acknowledges the chat up to this sequence, which moves the user's read mark: others who have the
   * chat open get a `receipt`. Returns false if not connected.
   */
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

  /** Sends an offer, an answer or a candidate to the other side. Returns false if not connected. */
  signal(callId, data) {
    return this.#session.link.send({ type: 'call_signal', call_id: callId, data });
  }
}
