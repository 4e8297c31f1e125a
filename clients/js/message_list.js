/**
 * The messages of one chat as a list: history, pushes and the user's own messages, merged without gaps or duplicates.
 *
 *   open()           opens the chat; the list is the latest page, and grows with every message
 *   fetchEarlier()   puts the page before in front
 *   send(body)       appends at once, as `sending`; then `sent`, or `failed` until retry() or drop()
 *
 * First come the stored messages by sequence, then those that are not stored yet. A message of the user keeps its
 * `key` when it is stored, so that its element stays in place. A deleted message stays, without its body. After a
 * reconnect the client delivers what was missed, and the list reads its messages again, because they may have been
 * deleted meanwhile. `messages` is the same array until something changes.
 */
import { READY } from './link.js';
import { uniqueId } from './util.js';

/** Messages of the first page, and of each page before. */
export const PAGE_MESSAGES = 50;

/** Messages kept when new ones arrive; older ones are fetched again. */
export const KEPT_MESSAGES_MAX = 500;

/** The server's maximum for one page. */
const REREAD_MESSAGES_MAX = 500;

export class MessageList {
  chatId;
  #client;
  #pageSize;
  #stored = [];
  #unstored = [];
  /** The key of a message that is acknowledged and not in the list yet → its sequence. */
  #acknowledged = new Map();
  #early = [];
  #isLoaded = false;
  #hasEarlier = false;
  #snapshot = null;
  #listeners = new Set();
  #opening = null;
  #fetching = null;
  #unlisten;

  /** Made by client.messageList(). */
  constructor(client, chatId, { pageSize = PAGE_MESSAGES } = {}) {
    this.#client = client;
    this.chatId = chatId;
    this.#pageSize = pageSize;
    const inChat = (listener) => (push) => push.chat_id === chatId && listener(push);
    const stops = [
      client.on('message', inChat((message) => this.#onMessage(message))),
      client.on('message_deleted', inChat(({ sequence }) => this.#onDeleted(sequence))),
      client.on('state', ({ state }) => state === READY && this.#isLoaded && this.#reread()),
    ];
    this.#unlisten = () => stops.forEach((stop) => stop());
  }

  get messages() {
    this.#snapshot ??= [...this.#stored, ...this.#unstored];
    return this.#snapshot;
  }

  /** Whether the first page is there. */
  get isLoaded() {
    return this.#isLoaded;
  }

  /** Whether the chat has messages before the first of the list. */
  get hasEarlier() {
    return this.#hasEarlier;
  }

  /** The sequence of the last stored message, or 0. */
  get lastSequence() {
    return this.#stored.at(-1)?.sequence ?? 0;
  }

  /** Calls back after every change; returns a function that ends it. */
  subscribe(listener) {
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Opens the chat and reads the latest page, once; after an error it can be called again. */
  open() {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = null;
      this.#early = [];
      throw error;
    });
    return this.#opening;
  }

  /** Closes the chat. The list still grows; open() opens the chat again. */
  async close() {
    this.#opening = null;
    await this.#client.closeChat(this.chatId);
  }

  /** The list no longer changes. */
  dispose() {
    this.#unlisten();
    this.#listeners.clear();
  }

  /** Adds the page before. Promises whether there are more. */
  fetchEarlier(options) {
    this.#fetching ??= this.#fetchEarlier(options).finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  /** Promises the acknowledgement; rejects, and keeps the message as `failed`, if the server refuses it. */
  send(body, { clientMessageId = uniqueId() } = {}) {
    const entry = {
      key: clientMessageId,
      client_message_id: clientMessageId,
      chat_id: this.chatId,
      sender_id: this.#client.userId,
      body,
      sent_at: null,
    };
    this.#unstored.push(entry);
    return this.#transmit(entry);
  }

  /** Sends a failed message again, with the same id, because it may have arrived. */
  retry(key) {
    const entry = this.#unstored.find((other) => other.key === key);
    if (entry === undefined) return Promise.resolve(null);
    return this.#transmit(entry);
  }

  /** Removes a failed message. */
  drop(key) {
    this.#settle(key);
    this.#changed();
  }

  /** Acknowledges everything up to the last message. Returns false if not connected. */
  markRead() {
    return this.#client.ack(this.chatId, this.lastSequence);
  }

  async #open() {
    const { latest_sequence: latest } = await this.#client.openChat(this.chatId);
    if (this.#isLoaded) return;
    const page = await this.#fetchBefore(latest + 1);
    this.#isLoaded = true;
    this.#hasEarlier = page.has_more;
    this.#stored = page.messages.map(entryOf);
    for (const [key, sequence] of this.#acknowledged) if (sequence <= this.lastSequence) this.#adopt(sequence, key);
    for (const message of this.#early.splice(0)) this.#append(message);
    this.#changed();
  }

  async #fetchEarlier(options) {
    if (!this.#hasEarlier) return false;
    const page = await this.#fetchBefore(this.#stored[0].sequence, options);
    this.#stored.unshift(...page.messages.map(entryOf));
    this.#hasEarlier = page.has_more;
    this.#changed();
    return this.#hasEarlier;
  }

  #fetchBefore(beforeSequence, { limit = this.#pageSize, ...options } = {}) {
    return this.#client.api.messages(this.chatId, { ...options, beforeSequence, limit });
  }

  /** Before the first page is there, messages wait, because the page may have them too. */
  #onMessage(message) {
    if (!this.#isLoaded) {
      if (this.#opening !== null) this.#early.push(message);
      return;
    }
    this.#append(message);
    this.#changed();
  }

  #append(message) {
    const entry = entryOf(message);
    if (message.sequence <= this.lastSequence) {
      this.#adopt(message.sequence, entry.key);
      return;
    }
    this.#settle(entry.key);
    this.#stored.push(entry);
    if (this.#stored.length <= KEPT_MESSAGES_MAX || this.#fetching !== null) return;
    this.#stored.shift(); // one for one, so that a user who scrolls back loses little
    this.#hasEarlier = true;
  }

  #onDeleted(sequence) {
    this.#replace(sequence, { body: undefined, deleted: true });
    this.#changed();
  }

  async #reread() {
    const limit = Math.min(this.#stored.length, REREAD_MESSAGES_MAX);
    if (limit === 0) return;
    const page = await this.#fetchBefore(this.lastSequence + 1, { limit }).catch(() => null);
    for (const message of page?.messages ?? []) {
      if (message.deleted) this.#onDeleted(message.sequence);
    }
  }

  async #transmit(entry) {
    const { key: clientMessageId, body } = entry;
    this.#mark(clientMessageId, { state: 'sending', error: undefined });
    try {
      const ack = await this.#client.sendMessage(this.chatId, body, { clientMessageId });
      if (ack.sequence <= this.lastSequence) this.#adopt(ack.sequence, clientMessageId);
      else this.#acknowledged.set(clientMessageId, ack.sequence);
      this.#mark(clientMessageId, { state: 'sent' });
      return ack;
    } catch (error) {
      this.#mark(clientMessageId, { state: 'failed', error });
      throw error;
    }
  }

  #mark(key, fields) {
    const position = this.#unstored.findIndex((entry) => entry.key === key);
    if (position >= 0) this.#unstored[position] = { ...this.#unstored[position], ...fields };
    this.#changed();
  }

  #replace(sequence, fields) {
    const position = this.#stored.findIndex((entry) => entry.sequence === sequence);
    if (position >= 0) this.#stored[position] = { ...this.#stored[position], ...fields };
  }

  #settle(key) {
    this.#unstored = this.#unstored.filter((entry) => entry.key !== key);
    this.#acknowledged.delete(key);
  }

  /** The list has this message from a page or a sync, which do not name it as the user's own device does. */
  #adopt(sequence, key) {
    if (!this.#unstored.some((entry) => entry.key === key)) return;
    this.#replace(sequence, { key });
    this.#settle(key);
  }

  #changed() {
    this.#snapshot = null;
    for (const listener of [...this.#listeners]) listener();
  }
}

function entryOf({ type, ...message }) {
  const key = message.client_message_id ?? `#${message.sequence}`;
  return { key, state: 'sent', ...message };
}
