/**
 * What two people wrote to each other, as far as this page has it.
 *
 * Messages the server has are ordered by sequence and without a gap; those on their way follow. A
 * message of one's own is recognised by its `client_message_id`, and keeps its `key` when it turns
 * from one into the other, so that what shows it need not move.
 */

/** Messages kept in the page. What is older is fetched again when somebody scrolls back. */
const MESSAGES_MAX = 500;

export class Talk {
  chatId;

  /** Set when the page began to collect messages; before that only their number counts. */
  collecting = false;
  typing = false;

  /** Promises that the chat is there to be written to; null before it was asked for. */
  made = null;
  #messages = [];
  #pending = [];
  #latest = 0;
  #read = 0;

  constructor(chatId) {
    this.chatId = chatId;
  }

  get messages() {
    return [...this.#messages, ...this.#pending];
  }

  get latest() {
    return this.#latest;
  }

  get unread() {
    return Math.max(0, this.#latest - this.#read);
  }

  /** The sequence of the oldest message here; what lies before it can be fetched. */
  get first() {
    return this.#messages[0]?.sequence ?? this.#latest + 1;
  }

  /** What the server counted; never takes back what is known already. */
  learn({ latest_sequence: latest, unread }) {
    this.#latest = Math.max(this.#latest, latest);
    this.markRead(latest - unread);
  }

  markRead(sequence) {
    this.#read = Math.max(this.#read, sequence);
  }

  /** A message in its turn. `mine`: who writes has read what came before. */
  add(message, mine) {
    this.#latest = Math.max(this.#latest, message.sequence);
    if (mine) this.markRead(message.sequence);
    if (!this.collecting || message.sequence <= (this.#messages.at(-1)?.sequence ?? 0)) return;
    const entry = entryOf(message);
    this.#settle(entry.key);
    this.#messages.push(entry);
    if (this.#messages.length > MESSAGES_MAX) this.#messages.shift();
  }

  /** Older messages, just before those that are here. */
  addEarlier(messages) {
    const older = messages.filter(({ sequence }) => sequence < this.first);
    this.#messages.unshift(...older.map(entryOf));
  }

  addPending(clientMessageId, sender, body) {
    const entry = { key: clientMessageId, sender, body, sentAt: null, state: 'sending' };
    this.#pending.push(entry);
  }

  /** It may have come by a sync already, in which case nothing else will take it away. */
  acknowledged(clientMessageId, sequence) {
    if (sequence <= (this.#messages.at(-1)?.sequence ?? 0)) this.#settle(clientMessageId);
    else this.#mark(clientMessageId, 'sent');
  }

  failed(clientMessageId) {
    this.#mark(clientMessageId, 'failed');
  }

  /** Takes back a message that failed; its text, for another try. */
  takeBack(clientMessageId) {
    const entry = this.#pending.find(({ key }) => key === clientMessageId);
    this.#settle(clientMessageId);
    return entry?.body;
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
