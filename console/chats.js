/**
 * The chats with all contacts: one ChatLog each.
 *
 * The client library delivers every message once and in order, also after reconnects. This class
 * adds where a chat starts, what the user has read, and who is typing.
 */
import { uniqueId } from '/client/util.js';
import { chatIdOf } from './chat_id.js';
import { ChatLog } from './chat_log.js';

/** Messages shown when a chat is opened, and fetched for each "Earlier messages". */
const HISTORY = 50;

export class Chats {
  #client;
  #backend;
  #me;
  #onChange;
  #logs = new Map();
  #names = new Map();

  /** `onChange(name)` is called when the chat with this contact has changed. */
  constructor({ client, backend, me, onChange }) {
    this.#client = client;
    this.#backend = backend;
    this.#me = me;
    this.#onChange = onChange;
    client.on('message', (message) => this.#onMessage(message));
    client.on('chat', ({ chat_id: id, typing }) => this.#setTyping(id, (who) => typing.includes(who)));
    client.on('typing', ({ chat_id: id, user_id: user, typing }) =>
      this.#setTyping(id, (who, was) => (who === user ? typing : was)),
    );
  }

  /** Returns the log of the chat with this contact; creates it the first time. */
  with(name) {
    let log = this.#logs.get(name);
    if (log === undefined) {
      log = new ChatLog(chatIdOf(this.#me, name));
      this.#logs.set(name, log);
      this.#names.set(log.chatId, name);
    }
    return log;
  }

  unread(name) {
    return this.with(name).unread;
  }

  /** Loads the unread counts of the chats with these contacts. */
  async load(names) {
    for (const name of names) this.with(name);
    for (const chat of await this.#backend.chats()) {
      const name = this.#names.get(chat.chat_id);
      if (name === undefined) continue;
      this.with(name).applyCounts(chat);
      this.#onChange(name);
    }
  }

  /** Opens the chat, and creates it if it does not exist. */
  async open(name) {
    const log = this.with(name);
    const chat = await this.#create(log, name);
    log.applyCounts(chat);
    const start = log.collecting ? undefined : Math.max(0, chat.latest_sequence - HISTORY);
    log.collecting = true;
    await this.#client.openChat(log.chatId, { afterSequence: start });
    this.#onChange(name);
  }

  close(name) {
    const log = this.with(name);
    log.typing = false;
    this.#client.closeChat(log.chatId).catch(() => {});
  }

  /** The user sees the end of the chat. */
  markRead(name) {
    const log = this.with(name);
    if (log.unread === 0 || !this.#client.ack(log.chatId, log.latest)) return;
    log.markRead(log.latest);
    this.#onChange(name);
  }

  /** Waits until the chat exists, because the user may write before that. */
  async send(name, body, clientMessageId = uniqueId()) {
    const log = this.with(name);
    log.addPending(clientMessageId, this.#me, body);
    this.#onChange(name);
    try {
      await (log.created ?? this.#create(log, name));
      const ack = await this.#client.sendMessage(log.chatId, body, { clientMessageId });
      log.onAcknowledged(clientMessageId, ack.sequence);
    } catch {
      log.onFailed(clientMessageId);
    }
    this.#onChange(name);
  }

  /** Uses the same id, because a message without an answer may have arrived. */
  retry(name, key) {
    return this.send(name, this.with(name).removePending(key), key);
  }

  sendTyping(name, typing) {
    this.#client.typing(this.with(name).chatId, typing);
  }

  async fetchEarlier(name) {
    const log = this.with(name);
    const before = log.first - 1;
    const start = Math.max(0, before - HISTORY);
    const page = await this.#client.fetchMessages(log.chatId, start, before - start);
    log.addEarlier(page.messages);
    this.#onChange(name);
  }

  /** Creates the chat; after a failure the next caller tries again. */
  #create(log, name) {
    log.created = this.#backend.createChat(log.chatId, [name]);
    log.created.catch(() => {
      log.created = null;
    });
    return log.created;
  }

  #onMessage(message) {
    const { chat_id: chatId, sender_id: sender } = message;
    const mine = sender === this.#me;
    if (!this.#names.has(chatId) && !mine && chatId === chatIdOf(this.#me, sender))
      this.with(sender);
    const name = this.#names.get(chatId);
    if (name === undefined) return;
    const log = this.with(name);
    log.add(message, mine);
    if (!mine) log.typing = false;
    this.#onChange(name);
  }

  #setTyping(chatId, decide) {
    const name = this.#names.get(chatId);
    if (name === undefined) return;
    const log = this.with(name);
    log.typing = decide(name, log.typing);
    this.#onChange(name);
  }
}
