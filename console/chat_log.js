/** One chat: who takes part, its messages, and what is read. */

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

  /** The messages, from when the chat is opened; null before. */
  list = null;
  typing = new Set();

  /** Text that is written and not sent. */
  draft = '';

  /** The promise that the chat exists on the server; null before it is requested. */
  created = null;
  #waiting = [];
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
    const listed = this.list?.messages ?? [];
    return this.#waiting.length === 0 ? listed : [...listed, ...this.#waiting];
  }

  get latest() {
    return this.#latest;
  }

  get unread() {
    return this.#unread;
  }

  get isLoaded() {
    return this.list?.isLoaded === true;
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
  readersOf({ sequence, sender_id: sender }) {
    if (sequence === undefined) return 0;
    const others = this.members.filter((name) => name !== sender);
    return others.filter((name) => (this.#reads.get(name) ?? 0) >= sequence).length;
  }

  markRead() {
    this.#read = this.#latest;
    this.#unread = 0;
  }

  /** Counts the next message. A user who writes has read all messages before (`mine`). */
  count(message, mine) {
    if (message.sequence > this.#latest) {
      this.#latest = message.sequence;
      this.#unread += 1;
    }
    if (mine) this.#unread = 0;
    this.activityMs = Math.max(this.activityMs, Date.parse(message.sent_at));
    this.typing.delete(message.sender_id);
    this.onRead(message.sender_id, message.sequence);
  }

  /** Adds a message that waits until the chat has an id. */
  addWaiting(message) {
    this.#waiting.push(message);
  }

  markFailed(key) {
    this.#waiting = this.#waiting.map((message) =>
      message.key === key ? { ...message, state: 'failed' } : message,
    );
  }

  /** Removes a waiting message and returns it, or undefined. */
  takeWaiting(key) {
    const message = this.#waiting.find((other) => other.key === key);
    this.#waiting = this.#waiting.filter((other) => other.key !== key);
    return message;
  }

  /** Unless newer counts are known. */
  #applyCounts({ latest_sequence: latest, unread }) {
    if (latest < this.#latest) return;
    this.#latest = latest;
    this.#unread = this.#read < latest ? unread : 0;
  }
}
