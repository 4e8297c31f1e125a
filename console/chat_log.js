/**
 * One chat: who takes part, the messages that this page has loaded, and what is read.
 *
 * First come the messages that the server has stored, by sequence and without a gap, then the
 * pending ones. A message of the user keeps its `key` (its `client_message_id`) when it changes
 * from pending to stored, so that its element stays in place.
 */

/** Messages kept in the page. Older ones are fetched again when the user scrolls back. */
const MESSAGES_MAX = 500;

export class ChatLog {
  /** The id on the server; null for a direct chat that the server has not named yet. */
  chatId;

  /** The other user of a direct chat; null in a group. */
  peer;
  members = [];
  admins = [];
  membersCanAdd = false;

  /** When something last happened, in milliseconds; orders the chats. */
  activityMs = 0;

  /** Whether the page keeps the messages; before the chat is opened it only counts them. */
  collecting = false;
  typing = new Set();

  /** Text that is written and not sent. */
  draft = '';

  /** The promise that the chat exists on the server; null before it is requested. */
  created = null;
  #messages = [];
  #pending = [];
  #latest = 0;
  #read = 0;
  #unread = 0;

  /** The user → the sequence up to which that user has read, for those who show it. */
  #reads = new Map();

  constructor({ chatId = null, peer = null }) {
    this.chatId = chatId;
    this.peer = peer;
  }

  get isGroup() {
    return this.peer === null;
  }

  get title() {
    return this.peer ?? this.chatId;
  }

  get messages() {
    return [...this.#messages, ...this.#pending];
  }

  get latest() {
    return this.#latest;
  }

  get unread() {
    return this.#unread;
  }

  /** The sequence of the oldest loaded message; earlier ones can be fetched. */
  get first() {
    return this.#messages[0]?.sequence ?? this.#latest + 1;
  }

  /** Applies what the server tells about the chat. */
  apply(told) {
    this.chatId = told.chat_id;
    this.members = told.members;
    this.admins = told.admins;
    this.membersCanAdd = told.members_can_add;
    this.activityMs = Math.max(this.activityMs, Date.parse(told.last_activity));
    for (const [user, sequence] of Object.entries(told.read ?? {})) this.onRead(user, sequence);
    this.#applyCounts(told);
  }

  onRead(user, sequence) {
    this.#reads.set(user, Math.max(this.#reads.get(user) ?? 0, sequence));
  }

  /** How many of the other members have read this message. */
  readersOf({ sequence, sender }) {
    if (sequence === undefined) return 0;
    const others = this.members.filter((name) => name !== sender);
    return others.filter((name) => (this.#reads.get(name) ?? 0) >= sequence).length;
  }

  markRead() {
    this.#read = this.#latest;
    this.#unread = 0;
  }

  /** Adds the next message. A user who writes has read all messages before (`mine`). */
  add(message, mine) {
    if (message.sequence > this.#latest) {
      this.#latest = message.sequence;
      this.#unread += 1;
    }
    if (mine) this.#unread = 0;
    this.activityMs = Math.max(this.activityMs, Date.parse(message.sent_at));
    this.typing.delete(message.sender_id);
    this.onRead(message.sender_id, message.sequence);
    if (!this.collecting || message.sequence <= (this.#messages.at(-1)?.sequence ?? 0)) return;
    const entry = entryOf(message);
    this.#settle(entry.key);
    this.#messages.push(entry);
    if (this.#messages.length > MESSAGES_MAX) this.#messages.shift();
  }

  /** Adds older messages, which end just before the first. */
  addEarlier(messages) {
    const older = messages.filter(({ sequence }) => sequence < this.first);
    this.#messages.unshift(...older.map(entryOf));
  }

  addPending(clientMessageId, sender, body) {
    const entry = { key: clientMessageId, sender, body, sentAt: null, state: 'sending' };
    this.#pending.push(entry);
  }

  /** If a sync has delivered the message already, nothing else removes it from the pending ones. */
  onAcknowledged(clientMessageId, sequence) {
    if (sequence <= (this.#messages.at(-1)?.sequence ?? 0)) this.#settle(clientMessageId);
    else this.#mark(clientMessageId, 'sent');
  }

  onFailed(clientMessageId) {
    this.#mark(clientMessageId, 'failed');
  }

  /** Removes a failed message and returns its text, to send it again. */
  removePending(clientMessageId) {
    const entry = this.#pending.find(({ key }) => key === clientMessageId);
    this.#settle(clientMessageId);
    return entry?.body;
  }

  /** Unless newer counts are known. */
  #applyCounts({ latest_sequence: latest, unread }) {
    if (latest < this.#latest) return;
    this.#latest = latest;
    this.#unread = this.#read < latest ? unread : 0;
  }

  #mark(clientMessageId, state) {
    const entry = this.#pending.find(({ key }) => key === clientMessageId);
    if (entry !== undefined) entry.state = state;
  }

  #settle(clientMessageId) {
    this.#pending = this.#pending.filter(({ key }) => key !== clientMessageId);
  }
}

function entryOf(message) {
  return {
    key: message.client_message_id ?? `#${message.sequence}`,
    sequence: message.sequence,
    sender: message.sender_id,
    body: message.body,
    sentAt: message.sent_at,
    state: 'sent',
  };
}
