/**
 * The chats with all contacts: one Talk each, fed by the connection.
 *
 * The client library gives out every message once and in order, over reconnects too; what is added
 * here is where a chat begins, what was read, and who is typing.
 */
import { uniqueId } from '/client/util.js';
import { chatIdOf } from './chat_id.js';
import { Talk } from './talk.js';

/** Messages shown when a chat is opened, and fetched each time somebody asks for earlier ones. */
const HISTORY = 50;

export class Talks {
  #client;
  #backend;
  #me;
  #onChange;
  #talks = new Map();
  #names = new Map();

  /** `onChange(name)` whenever the talk with somebody changed. */
  constructor({ client, backend, me, onChange }) {
    this.#client = client;
    this.#backend = backend;
    this.#me = me;
    this.#onChange = onChange;
    client.on('message', (message) => this.#received(message));
    client.on('chat', ({ chat_id: id, typing }) => this.#typing(id, (who) => typing.includes(who)));
    client.on('typing', ({ chat_id: id, user_id: user, typing }) =>
      this.#typing(id, (who, was) => (who === user ? typing : was)),
    );
  }

  /** The talk with somebody; made when first asked for. */
  with(name) {
    let talk = this.#talks.get(name);
    if (talk === undefined) {
      talk = new Talk(chatIdOf(this.#me, name));
      this.#talks.set(name, talk);
      this.#names.set(talk.chatId, name);
    }
    return talk;
  }

  unread(name) {
    return this.with(name).unread;
  }

  /** How many messages wait in the chats with these people. */
  async load(names) {
    for (const name of names) this.with(name);
    for (const chat of await this.#backend.chats()) {
      const name = this.#names.get(chat.chat_id);
      if (name === undefined) continue;
      this.with(name).learn(chat);
      this.#onChange(name);
    }
  }

  /** Opens the chat, making it if it is the first time for both. */
  async open(name) {
    const talk = this.with(name);
    const chat = await this.#make(talk, name);
    talk.learn(chat);
    const start = talk.collecting ? undefined : Math.max(0, chat.latest_sequence - HISTORY);
    talk.collecting = true;
    await this.#client.openChat(talk.chatId, { afterSequence: start });
    this.#onChange(name);
  }

  close(name) {
    const talk = this.with(name);
    talk.typing = false;
    this.#client.closeChat(talk.chatId).catch(() => {});
  }

  /** The user has all of it before their eyes. */
  markRead(name) {
    const talk = this.with(name);
    if (talk.unread === 0 || !this.#client.ack(talk.chatId, talk.latest)) return;
    talk.markRead(talk.latest);
    this.#onChange(name);
  }

  /** Whoever writes fast is not faster than the making of the chat. */
  async send(name, body, clientMessageId = uniqueId()) {
    const talk = this.with(name);
    talk.addPending(clientMessageId, this.#me, body);
    this.#onChange(name);
    try {
      await (talk.made ?? this.#make(talk, name));
      const ack = await this.#client.sendMessage(talk.chatId, body, { clientMessageId });
      talk.acknowledged(clientMessageId, ack.sequence);
    } catch {
      talk.failed(clientMessageId);
    }
    this.#onChange(name);
  }

  /** Under the same id: a message that failed for want of an answer may have arrived. */
  sendAgain(name, key) {
    return this.send(name, this.with(name).takeBack(key), key);
  }

  sayTyping(name, typing) {
    this.#client.typing(this.with(name).chatId, typing);
  }

  async fetchEarlier(name) {
    const talk = this.with(name);
    const before = talk.first - 1;
    const start = Math.max(0, before - HISTORY);
    const page = await this.#client.fetchMessages(talk.chatId, start, before - start);
    talk.addEarlier(page.messages);
    this.#onChange(name);
  }

  /** Made once by whoever comes first; after a failure the next one tries again. */
  #make(talk, name) {
    talk.made = this.#backend.createChat(talk.chatId, [name]);
    talk.made.catch(() => {
      talk.made = null;
    });
    return talk.made;
  }

  #received(message) {
    const { chat_id: chatId, sender_id: sender } = message;
    const mine = sender === this.#me;
    if (!this.#names.has(chatId) && !mine && chatId === chatIdOf(this.#me, sender))
      this.with(sender);
    const name = this.#names.get(chatId);
    if (name === undefined) return;
    const talk = this.with(name);
    talk.add(message, mine);
    if (!mine) talk.typing = false;
    this.#onChange(name);
  }

  #typing(chatId, decide) {
    const name = this.#names.get(chatId);
    if (name === undefined) return;
    const talk = this.with(name);
    talk.typing = decide(name, talk.typing);
    this.#onChange(name);
  }
}
