/**
 * The user's chats: one ChatLog for each contact and each group.
 *
 * The client library keeps the messages of a chat, from when it is opened. This class adds who has
 * read what, and who is typing. The list of chats comes from the server, and its pushes keep the
 * list up to date.
 */
import { uniqueId } from '/client/util.js';
import { ChatLog } from './chat_log.js';

/** The chats with the latest activity that the page shows. */
const CHATS_MAX = 1000;

export class Chats {
  #client;
  #api;
  #me;
  #profiles;
  #onChange;
  #onMessage;
  #onClosed;
  #direct = new Map();
  #byId = new Map();

  /**
   * `onChange(chat)`: a chat has changed. `onMessage(chat, message)`: another user has written.
   * `onClosed(chat)`: the user is no longer a member.
   */
  constructor({ client, me, profiles, onChange, onMessage, onClosed }) {
    this.#client = client;
    this.#api = client.api;
    this.#me = me;
    this.#profiles = profiles;
    this.#onChange = onChange;
    this.#onMessage = onMessage;
    this.#onClosed = onClosed;
    client.on('message', (message) => this.#receive(message));
    client.on('chat', ({ chat_id: id, typing }) =>
      this.#change(id, (chat) => {
        chat.typing = new Set(typing);
      }),
    );
    client.on('typing', ({ chat_id: id, user_id: user, typing }) =>
      this.#change(id, (chat) => (typing ? chat.typing.add(user) : chat.typing.delete(user))),
    );
    client.on('receipt', ({ chat_id: id, user_id: user, sequence }) =>
      this.#change(id, (chat) => chat.onRead(user, sequence)),
    );
    for (const push of ['chat_added', 'chat_changed', 'sync_required'])
      client.on(push, ({ chat_id: id }) => this.#refresh(id));
    for (const push of ['chat_removed', 'chat_closed'])
      client.on(push, ({ chat_id: id }) => this.#remove(id));
  }

  /** The groups, the latest activity first. */
  get groups() {
    const groups = [...this.#byId.values()].filter((chat) => chat.isGroup);
    return groups.sort((left, right) => right.activityMs - left.activityMs);
  }

  /** The users with whom there is a direct chat that is not empty. */
  get peers() {
    return [...this.#direct.values()].filter(({ latest }) => latest > 0).map(({ peer }) => peer);
  }

  get unread() {
    const chats = new Set([...this.#direct.values(), ...this.#byId.values()]);
    return [...chats].reduce((sum, chat) => sum + chat.unread, 0);
  }

  /** Returns the chat with this contact; creates it the first time. */
  with(name) {
    let chat = this.#direct.get(name);
    if (chat === undefined) {
      chat = new ChatLog({ peer: name });
      this.#direct.set(name, chat);
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
    const listed = [];
    for await (const chat of this.#api.eachChat()) if (listed.push(chat) >= CHATS_MAX) break;
    const ids = new Set(listed.map(({ chat_id: id }) => id));
    for (const { chatId } of this.groups) if (!ids.has(chatId)) this.#remove(chatId);
    for (const chat of listed) this.#adopt(chat);
  }

  /** Creates a group; promises the chat. */
  async createGroup(name, members) {
    return this.#adopt(await this.#api.createGroup({ chatId: name, members }));
  }

  async addMember(chat, name) {
    await this.#api.addMember(chat.chatId, name);
    await this.#read(chat.chatId);
  }

  /** `isAdmin` false: the user is an admin no longer. */
  async setAdmin(chat, name, isAdmin) {
    if (isAdmin) await this.#api.addAdmin(chat.chatId, name);
    else await this.#api.removeAdmin(chat.chatId, name);
    await this.#read(chat.chatId);
  }

  async letMembersAdd(chat, allowed) {
    this.#adopt(await this.#api.updateChat(chat.chatId, { membersCanAdd: allowed }));
  }

  async removeMember(chat, name) {
    await this.#api.removeMember(chat.chatId, name);
    if (name === this.#me) this.#remove(chat.chatId);
    else await this.#read(chat.chatId);
  }

  /** Opens the chat, and creates it if it does not exist. */
  async open(chat) {
    await this.#create(chat);
    await this.#listOf(chat).open();
    this.#onChange(chat);
  }

  close(chat) {
    chat.typing.clear();
    chat.list?.close().catch(() => {});
  }

  /** The user sees the end of the chat. */
  markRead(chat) {
    if (chat.unread === 0 || !this.#client.ack(chat.chatId, chat.latest)) return;
    chat.markRead();
    this.#onChange(chat);
  }

  /** The user may write before the chat exists; then the message waits. */
  async send(chat, body, clientMessageId = uniqueId()) {
    try {
      if (chat.chatId === null) await this.#createFor(chat, { key: clientMessageId, body });
      await this.#listOf(chat).send(body, { clientMessageId });
    } catch {
      /* The list shows it as failed. */
    }
  }

  /** Uses the same id, because a message without an answer may have arrived. */
  async retry(chat, key) {
    const waiting = chat.takeWaiting(key);
    if (waiting !== undefined) await this.send(chat, waiting.body, key);
    else await chat.list.retry(key).catch(() => {});
  }

  sendTyping(chat, typing) {
    if (chat.chatId !== null) this.#client.typing(chat.chatId, typing);
  }

  async fetchEarlier(chat) {
    await chat.list.fetchEarlier();
  }

  /** Shows the message while the direct chat is being created. */
  async #createFor(chat, message) {
    chat.addWaiting({ ...message, sender_id: this.#me, sent_at: null, state: 'sending' });
    this.#onChange(chat);
    try {
      await (chat.created ?? this.#create(chat));
      chat.takeWaiting(message.key);
    } catch (error) {
      chat.markFailed(message.key);
      this.#onChange(chat);
      throw error;
    }
  }

  /** Asks for the direct chat, or reads a group; after a failure the next caller tries again. */
  #create(chat) {
    const asked = chat.isGroup
      ? this.#api.chat(chat.chatId)
      : this.#api.directChat(chat.peer);
    chat.created = asked.then((told) => {
      this.#adopt(told);
      return told;
    });
    chat.created.catch(() => {
      chat.created = null;
    });
    return chat.created;
  }

  #receive(message) {
    const chat = this.#byId.get(message.chat_id);
    if (chat === undefined) {
      this.#receiveUnknown(message);
      return;
    }
    const mine = message.sender_id === this.#me;
    chat.count(message, mine);
    this.#onChange(chat);
    if (!mine) this.#onMessage(chat, message);
  }

  /** The message came before the page has read its chat; the chat's counts include it. */
  async #receiveUnknown(message) {
    const chat = await this.#refresh(message.chat_id);
    if (chat !== undefined && message.sender_id !== this.#me) this.#onMessage(chat, message);
  }

  /** Reads one chat again, or all of them; the next push or reconnect repeats what has failed. */
  async #refresh(chatId) {
    return (chatId === undefined ? this.load() : this.#read(chatId)).catch(() => undefined);
  }

  async #read(chatId) {
    return this.#adopt(await this.#api.chat(chatId));
  }

  /** Applies what the server tells about a chat. */
  #adopt(told) {
    const { chat_id: chatId, kind, members } = told;
    const chat = this.#byId.get(chatId) ?? this.#unnamed(chatId, kind, members);
    this.#byId.set(chatId, chat);
    chat.apply(told);
    for (const [user, profile] of Object.entries(told.profiles ?? {}))
      this.#profiles.set(user, profile);
    this.#onChange(chat);
    return chat;
  }

  #listOf(chat) {
    if (chat.list === null) {
      chat.list = this.#client.messageList(chat.chatId);
      chat.list.subscribe(() => this.#onChange(chat));
    }
    return chat.list;
  }

  #unnamed(chatId, kind, members) {
    if (kind !== 'direct') return new ChatLog({ chatId });
    return this.with(members.find((name) => name !== this.#me) ?? this.#me);
  }

  #remove(chatId) {
    const chat = this.#byId.get(chatId);
    if (chat === undefined || !chat.isGroup) return;
    this.#byId.delete(chatId);
    chat.list?.dispose();
    this.#onClosed(chat);
  }

  #change(chatId, change) {
    const chat = this.#byId.get(chatId);
    if (chat === undefined) return;
    change(chat);
    this.#onChange(chat);
  }
}
