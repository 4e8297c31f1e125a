/**
 * The life of a connection, from `connection_established` to its end: heartbeats, token renewal,
 * restoring subscriptions and chats, and handling messages from the server.
 *
 * Restoring runs in SYNCING: first the presence subscriptions, then every open chat and every chat
 * with a gap. READY follows when the server has answered all of it; then the requests and messages
 * that waited are sent.
 */
import { Activity } from './activity.js';
import { retryDelayMs } from './backoff.js';
import { Chats } from './chats.js';
import { RollcallError } from './error.js';
import { Heartbeat } from './heartbeat.js';
import { DISCONNECTED, Link, READY, SYNCING } from './link.js';
import { Outbox } from './outbox.js';
import { PresenceCache } from './presence.js';
import { Requests } from './requests.js';
import { TokenRefresh } from './token.js';
import { inParallel } from './util.js';

/** Chats restored at the same time after a reconnect; more would reach the rate limit. */
export const RESTORE_PARALLEL = 4;

/** Attempts to restore the subscriptions or a chat before an `error` event reports it. */
export const RESTORE_ATTEMPTS_MAX = 10;

/** Promises the error of some work, or null. */
const errorOf = (work) =>
  work().then(
    () => null,
    (error) => error,
  );

export class Session {
  link;
  requests;
  outbox;
  chats;
  activity;
  presence = new PresenceCache();
  userId = null;
  connectionId = null;
  #emitter;
  #timers;
  #random;
  #heartbeat;
  #tokenRefresh;
  #waiters = [];
  #generation = 0;
  #turn = Promise.resolve(); // of those that wait after RATE_LIMITED

  constructor({ url, tokens, WebSocket, timers, random, activity, emitter }) {
    this.#emitter = emitter;
    this.#timers = timers;
    this.#random = random;
    this.#buildLink(url, tokens, WebSocket);
    this.#buildQueues();
    this.#buildActivity(activity);
  }

  get state() {
    return this.link.state;
  }

  connect() {
    const ready = new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
    ready.catch(() => {}); // a caller that does not wait gets the `state` event
    if (this.state === DISCONNECTED) this.activity.start();
    this.link.connect();
    return ready;
  }

  close() {
    const error = new RollcallError('CLOSED', 'the client was closed');
    if (this.state === DISCONNECTED) this.#failAll(error);
    this.link.close(error);
  }

  async requestPresences(type, userIds, options = { idempotent: true }) {
    const reply = await this.requests.request(type, { user_ids: userIds }, options);
    return reply.presences;
  }

  async openChat(chatId, options = { idempotent: true }) {
    const snapshot = await this.requests.request('open_chat', { chat_id: chatId }, options);
    this.chats.begin(chatId, snapshot.latest_sequence);
    const behind = this.chats.lastSequence(chatId) < snapshot.latest_sequence;
    if (behind && !options.early) this.#restore(chatId, () => this.chats.sync(chatId));
    return snapshot;
  }

  // --- Construction -----------------------------------------------------------------------------

  #buildLink(url, tokens, WebSocket) {
    const [timers, random] = [this.#timers, this.#random];
    this.link = new Link({
      url,
      tokens,
      WebSocket,
      timers,
      random,
      events: {
        state: (change) => this.#onStateChanged(change),
        established: (message) => this.#onEstablished(message),
        message: (message) => this.#onMessage(message),
        error: (error) => this.#emitter.emit('error', error),
        tooLarge: (id) => this.requests.tooLarge(id),
      },
    });
    this.#tokenRefresh = new TokenRefresh({
      tokens,
      timers,
      random,
      send: (token) => this.requests.request('refresh_token', { token }, { early: true }),
      onError: (error) => this.#emitter.emit('error', error),
      onRefused: (error) => this.link.close(error),
    });
  }

  #buildQueues() {
    const [timers, random] = [this.#timers, this.#random];
    this.requests = new Requests({
      timers,
      send: (frame) => this.link.send(frame),
      isOpen: (early) => this.state === READY || (early && this.state === SYNCING),
    });
    this.outbox = new Outbox({
      timers,
      random,
      send: (entry) => this.#sendEntry(entry),
      isOpen: () => this.state === READY,
    });
    this.chats = new Chats({
      fetchPage: (chatId, afterSequence) =>
        this.requests.request(
          'sync_request',
          { chat_id: chatId, after_sequence: afterSequence },
          { early: true },
        ),
      deliver: (message) => this.#emitter.emit('message', message),
      onGap: (chatId) => this.#restore(chatId, () => this.chats.sync(chatId)),
    });
  }

  #buildActivity({ page = globalThis.document, idleAfterMs, hiddenAfterMs }) {
    this.#heartbeat = new Heartbeat({
      timers: this.#timers,
      send: () => this.link.send({ type: 'heartbeat', active: this.activity.active }),
      onDead: () => this.link.drop('heartbeat_timeout'),
    });
    this.activity = new Activity({
      page,
      timers: this.#timers,
      idleAfterMs,
      hiddenAfterMs,
      onChange: () => this.#heartbeat.beat(),
    });
  }

  // --- Life of a connection ---------------------------------------------------------------------

  #onStateChanged(change) {
    if (change.state === DISCONNECTED) {
      this.#generation += 1;
      this.#heartbeat.stop();
      this.#tokenRefresh.stop();
      this.requests.connectionLost();
    }
    if (change.final) this.#failAll(change.error); // first, because a listener may call connect() again
    this.#emitter.emit('state', change);
  }

  #onEstablished(message) {
    this.#turn = Promise.resolve(); // what waits belongs to the connection before
    this.userId = message.user_id;
    this.connectionId = message.conn_id;
    this.#heartbeat.start({
      intervalMs: message.heartbeat_interval_seconds * 1000,
      expiryMs: message.expiry_window_seconds * 1000,
    });
    const skewMs = Date.parse(message.server_time) - this.#timers.now();
    this.#tokenRefresh.start(Number.isNaN(skewMs) ? 0 : skewMs);
    this.#emitter.emit('connection_established', message);
    this.#restoreAll();
  }

  /** Subscribes to and opens again what the application has asked for. */
  async #restoreAll() {
    const generation = this.#generation;
    if (this.presence.subscribed.length > 0) {
      await this.#restore(undefined, () =>
        this.requestPresences('subscribe_presence', this.presence.subscribed, { early: true }),
      );
    }
    await this.#restoreChats(this.chats.toRestore);
    if (generation !== this.#generation || this.state !== SYNCING) return;
    this.link.markReady();
    this.requests.flush();
    this.outbox.flush();
    for (const { resolve } of this.#waiters.splice(0)) resolve();
  }

  /** Opens and syncs what may have missed messages: after a reconnect, and when the server asks for it. */
  #restoreChats(chatIds) {
    return inParallel(chatIds, RESTORE_PARALLEL, (chatId) =>
      this.#restoreChat(chatId),
    );
  }

  /** Two steps, so that a retry repeats only the request that was refused. */
  async #restoreChat(chatId) {
    const wasOpen = this.chats.isOpen(chatId);
    if (wasOpen) await this.#restore(chatId, () => this.openChat(chatId, { early: true }));
    if (wasOpen && !this.chats.isOpen(chatId)) return; // refused for good
    await this.#restore(chatId, () => this.chats.sync(chatId));
  }

  /**
   * Restores the subscriptions or a part of one chat, and retries after temporary errors. The caller waits while
   * the server says RATE_LIMITED; other retries run in the background, so that a part of the server that is down does
   * not delay the rest. After a lost connection, the next one restores instead.
   */
  async #restore(chatId, work, attempt = 0) {
    const generation = this.#generation;
    let error = await errorOf(work);
    if (error?.code === 'RATE_LIMITED') error = await this.#retryInTurn(error, work);
    if (error === null || generation !== this.#generation || error.code === 'DISCONNECTED') return;
    if (!error.retryable || error.code === 'RATE_LIMITED' || attempt + 1 >= RESTORE_ATTEMPTS_MAX) {
      this.#onRestoreFailed(chatId, error);
      return;
    }
    this.#timers.pause(retryDelayMs(error, attempt, this.#random)).then(() => {
      if (generation === this.#generation) this.#restore(chatId, work, attempt + 1);
    });
  }

  /**
   * Waits as long as the server says, and tries again. One at a time, so that the chats do not compete for what the server
   * allows. Promises null, or the last error.
   */
  #retryInTurn(refusal, work) {
    const generation = this.#generation;
    const turn = this.#turn.then(async () => {
      let error = refusal;
      for (let attempt = 1; attempt < RESTORE_ATTEMPTS_MAX && error?.code === 'RATE_LIMITED'; attempt += 1) {
        await this.#timers.pause(retryDelayMs(error, attempt - 1, this.#random));
        if (generation !== this.#generation) break;
        error = await errorOf(work);
      }
      return error;
    });
    this.#turn = turn;
    return turn;
  }

  #onRestoreFailed(chatId, error) {
    if (chatId !== undefined && !error.retryable) {
      this.chats.close(chatId);
      this.chats.abandonGap(chatId);
    }
    error.chatId ??= chatId;
    this.#emitter.emit('error', error);
  }

  #failAll(error) {
    this.activity.stop();
    this.requests.failAll(error);
    this.outbox.failAll(error);
    this.#timers.cancelAll();
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  // --- Messages from the server -----------------------------------------------------------------

  #onMessage(message) {
    this.#heartbeat.onReceived();
    this.#applyMessage(message);
    const answered = message.id !== undefined && this.requests.settle(message);
    if (!answered) this.#emitMessage(message);
  }

  /** Updates the caches, whether the message is a reply or a push. */
  #applyMessage(message) {
    switch (message.type) {
      case 'presence_changed':
        this.#applyPresence(message);
        break;
      case 'presence_snapshot':
        for (const presence of message.presences ?? []) this.#applyPresence(presence);
        break;
      case 'chat_snapshot':
        for (const presence of message.presences ?? []) this.#applyPresence(presence);
        this.#emitter.emit('chat', message);
        if (message.id === undefined) this.#catchUp(message);
        break;
      case 'chat_closed':
        this.chats.close(message.chat_id);
        break;
      case 'message':
        this.chats.offer(message);
        break;
      case 'message_deleted':
        this.chats.onDeleted(message.chat_id, message.sequence);
        break;
      case 'sync_required':
        this.#restoreChats(this.chats.tracked);
        break;
      case 'connection_closing':
        if (typeof message.sync_from_sequence === 'object')
          this.chats.markMissed(message.sync_from_sequence ?? {});
        break;
    }
  }

  /** A snapshot that was not asked for: the connection may have missed messages. */
  #catchUp({ chat_id: chatId, latest_sequence: latest }) {
    const last = this.chats.lastSequence(chatId);
    if (last !== null && last < latest) this.#restore(chatId, () => this.chats.sync(chatId));
  }

  #emitMessage(message) {
    switch (message.type) {
      case 'delivery':
        this.#emitter.emit('delivery', message);
        if (typeof message.event === 'string')
          this.#emitter.emit(`delivery:${message.event}`, message.data);
        break;
      case 'error':
        this.#emitter.emit('error', RollcallError.fromMessage(message));
        break;
      case 'typing_changed':
        this.#emitter.emit('typing', message);
        break;
      case 'heartbeat_ack':
      case 'message':
      case 'presence_changed':
        break;
      default:
        this.#emitter.emit(message.type, message);
    }
  }

  #applyPresence({ type, id, ...presence }) {
    if (this.presence.apply(presence)) this.#emitter.emit('presence', presence);
  }

  /**
   * The server does not push a message back to its sender, so the acknowledgement takes its place,
   * unless the id was used before with another body.
   */
  async #sendEntry({ chatId, clientMessageId, body }) {
    const fields = { chat_id: chatId, client_message_id: clientMessageId, body };
    const ack = await this.requests.request('send_message', fields);
    if (ack.body_differs) {
      this.chats.expect(chatId, ack.sequence);
      return ack;
    }
    this.chats.offer({
      type: 'message',
      chat_id: chatId,
      message_id: ack.message_id,
      client_message_id: clientMessageId,
      sequence: ack.sequence,
      sender_id: this.userId,
      body,
      sent_at: new Date(this.#timers.now()).toISOString(),
    });
    return ack;
  }
}
