/**
 * The user's chats: one ChatLog for each contact and each group.
 *
 * The client library delivers every message once and in order, also after reconnects. This class
 * adds where a chat starts, what the user has read, and who is typing. The list of chats comes from
 * the server; a message of an unknown chat makes the page read that chat.
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
  #onMessage;
  #onClosed;
  #direct = new Map();
  #byId = new Map();

  /**
   * `onChange(chat)`: a chat has changed. `onMessage(chat, message)`: another user has written.
   * `onClosed(chat)`: the user is no longer a member.
   */
  constructor({ client, backend, me, onChange, onMessage, onClosed }) {
    this.#client = client;
    this.#backend = backend;
    this.#me = me;
    this.#onChange = onChange;
    this.#onMessage = onMessage;
    this.#onClosed = onClosed;
    client.on('message', (message) => this.#receive(message));
    client.on('chat', ({ chat_id: id, typing }) =>
      this.#setTyping(id, (chat) => {
        chat.typing = new Set(typing);
      }),
    );
    client.on('typing', ({ chat_id: id, user_id: user, typing }) =>
      this.#setTyping(id, (chat) => (typing ? chat.typing.add(user) : chat.typing.delete(user))),
    );
    client.on('chat_closed', ({ chat_id: id }) => this.#remove(id));
  }

  /** The groups, the latest activity first. */
  get groups() {
    const groups = [...this.#byId.values()].filter((chat) => chat.isGroup);
    return groups.sort((left, right) => right.activity - left.activity);
  }

  get unread() {
    const chats = new Set([...this.#direct.values(), ...this.#byId.values()]);
    return [...chats].reduce((sum, chat) => sum + chat.unread, 0);
  }

  /** Returns the chat with this contact; creates it the first time. */
  with(name) {
    let chat = this.#direct.get(name);
    if (chat === undefined) {
      chat = new ChatLog({ peer: name, chatId: chatIdOf(this.#me, name) });
      this.#direct.set(name, chat);
      this.#byId.set(chat.chatId, chat);
    }
    return chat;
  }

  /** Returns the group, or undefined if the user is not a member. */
  group(chatId) {
    const chat = this.#byId.get(chatId);
    return chat?.isGroup ? chat : undefined;
  }

  /** Reads the list of chats and their unread counts. */
  async load() {
    const listed = await this.#backend.chats();
    const ids = new Set(listed.map(({ chat_id: id }) => id));
    for (const { chatId } of this.groups) if (!ids.has(chatId)) this.#remove(chatId);
    listed.forEach((chat, position) => this.#adopt(chat, Date.now() - position));
  }

  /** Creates a group; promises the chat. */
  async createGroup(name, members) {
    return this.#adopt(await this.#backend.createChat(name, members), Date.now());
  }

  async addMember(chat, name) {
    await this.#backend.addMember(chat.chatId, name);
    await this.#read(chat.chatId);
  }

  async removeMember(chat, name) {
    await this.#backend.removeMember(chat.chatId, name);
    if (name === this.#me) this.#remove(chat.chatId);
    else await this.#read(chat.chatId);
  }

  /** Opens the chat, and creates it if it does not exist. */
  async open(chat) {
    const created = await this.#create(chat);
    chat.applyCounts(created);
    chat.members = created.members;
    const start = chat.collecting ? undefined : Math.max(0, created.latest_sequence - HISTORY);
    chat.collecting = true;
    await this.#client.openChat(chat.chatId, { afterSequence: start });
    this.#onChange(chat);
  }

  close(chat) {
    chat.typing.clear();
    this.#client.closeChat(chat.chatId).catch(() => {});
  }

  /** The user sees the end of the chat. */
  markRead(chat) {
    if (chat.unread === 0 || !this.#client.ack(chat.chatId, chat.latest)) return;
    chat.markRead();
    this.#onChange(chat);
  }

  /** Waits until the chat exists, because the user may write before that. */
  async send(chat, body, clientMessageId = uniqueId()) {
    chat.addPending(clientMessageId, this.#me, body);
    this.#onChange(chat);
    try {
      await (chat.created ?? this.#create(chat));
      const ack = await this.#client.sendMessage(chat.chatId, body, { clientMessageId });
      chat.onAcknowledged(clientMessageId, ack.sequence);
    } catch {
      chat.onFailed(clientMessageId);
    }
    this.#onChange(chat);
  }

  /** Uses the same id, because a message without an answer may have arrived. */
  retry(chat, key) {
    return this.send(chat, chat.removePending(key), key);
  }

  sendTyping(chat, typing) {
    this.#client.typing(chat.chatId, typing);
  }

  async fetchEarlier(chat) {
    const before = chat.first - 1;
    const start = Math.max(0, before - HISTORY);
    const page = await this.#client.fetchMessages(chat.chatId, start, before - start);
    chat.addEarlier(page.messages);
    this.#onChange(chat);
  }

  /** Creates a direct chat, or reads a group; after a failure the next caller tries again. */
  #create(chat) {
    chat.created = chat.isGroup
      ? this.#backend.chat(chat.chatId)
      : this.#backend.createChat(chat.chatId, [chat.peer]);
    chat.created.catch(() => {
      chat.created = null;
    });
    return chat.created;
  }

  #receive(message) {
    const { chat_id: chatId, sender_id: sender } = message;
    const mine = sender === this.#me;
    if (!this.#byId.has(chatId) && !mine && chatId === chatIdOf(this.#me, sender))
      this.with(sender);
    const chat = this.#byId.get(chatId);
    if (chat === undefined) {
      this.#readUnknown(message, mine);
      return;
    }
    chat.add(message, mine);
    chat.activity = Date.now();
    this.#onChange(chat);
    if (!mine) this.#onMessage(chat, message);
  }

  /** The user was added to a chat: this is how the page learns of it. */
  async #readUnknown(message, mine) {
    const chat = await this.#read(message.chat_id).catch(() => undefined);
    if (chat !== undefined && !mine) this.#onMessage(chat, message);
  }

  async #read(chatId) {
    return this.#adopt(await this.#backend.chat(chatId), Date.now());
  }

  /** Applies what the server tells about a chat. */
  #adopt(told, activity) {
    const { chat_id: chatId, members } = told;
    let chat = this.#byId.get(chatId) ?? this.#knownDirect(chatId, members);
    if (chat === undefined) {
      chat = new ChatLog({ chatId });
      this.#byId.set(chatId, chat);
    }
    chat.members = members;
    chat.activity = activity;
    chat.applyCounts(told);
    this.#onChange(chat);
    return chat;
  }

  #knownDirect(chatId, members) {
    const peer = members.find((name) => name !== this.#me);
    return peer !== undefined && chatId === chatIdOf(this.#me, peer) ? this.with(peer) : undefined;
  }

  #remove(chatId) {
    const chat = this.#byId.get(chatId);
    if (chat === undefined || !chat.isGroup) return;
    this.#byId.delete(chatId);
    this.#onClosed(chat);
  }

  #setTyping(chatId, change) {
    const chat = this.#byId.get(chatId);
    if (chat === undefined) return;
    change(chat);
    this.#onChange(chat);
  }
}
