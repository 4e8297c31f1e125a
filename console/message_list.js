/**
 * The list of messages of a chat.
 *
 * It scrolls to new messages only while the user is at the end of the list.
 */
const NEAR_END_PX = 60;

/** Messages of one user within this time are shown as a group. */
const GROUP_MS = 120000;

const STATES = { sending: 'sending …', sent: 'sent', failed: 'not sent' };

const timeOf = (text) =>
  new Date(text).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false });

export class MessageList {
  #list;
  #me;
  #onRetry;
  #items = new Map();

  /** `onRetry(key)`: the user wants to send a failed message again. */
  constructor({ list, me, onRetry }) {
    this.#list = list;
    this.#me = me;
    this.#onRetry = onRetry;
  }

  clear() {
    this.#items.clear();
    this.#list.replaceChildren();
  }

  draw(messages) {
    const list = this.#list;
    const fromEnd = list.scrollHeight - list.scrollTop - list.clientHeight;
    const atEnd = fromEnd < NEAR_END_PX;
    const lastBefore = list.lastElementChild;
    this.#dropMissing(messages);
    messages.forEach((message, position) => {
      const item = this.#items.get(message.key) ?? this.#add(message);
      if (list.children[position] !== item)
        list.insertBefore(item, list.children[position] ?? null);
      this.#drawItem(item, message, messages[position - 1]);
    });
    this.#drawReceipt(messages);
    const wrote = list.lastElementChild !== lastBefore && messages.at(-1)?.sender === this.#me;
    list.scrollTop = list.scrollHeight - list.clientHeight - (atEnd || wrote ? 0 : fromEnd);
  }

  #dropMissing(messages) {
    const keys = new Set(messages.map(({ key }) => key));
    for (const [key, item] of this.#items) {
      if (keys.has(key)) continue;
      item.remove();
      this.#items.delete(key);
    }
  }

  #add({ key, sender, body }) {
    const item = document.createElement('li');
    item.className = 'message';
    item.dataset.mine = String(sender === this.#me);
    const author = document.createElement('span');
    author.className = 'visually-hidden';
    author.textContent = sender === this.#me ? 'You: ' : `${sender}: `;
    const bubble = document.createElement('p');
    bubble.className = 'bubble';
    bubble.append(author, body);
    const note = document.createElement('span');
    note.className = 'message-note';
    item.append(bubble, note);
    this.#items.set(key, item);
    return item;
  }

  #drawItem(item, message, previous) {
    item.dataset.state = message.state;
    item.dataset.follows = String(follows(message, previous));
    const time = message.sentAt === null ? '' : timeOf(message.sentAt);
    const mine = message.sender === this.#me;
    const text = mine ? [time, STATES[message.state]].filter(Boolean).join(' · ') : time;
    const note = item.querySelector('.message-note');
    if (note.textContent === text) return;
    note.textContent = text;
    if (message.state === 'failed') note.append(this.#retryButton(message.key));
  }

  /** Only the last message of a group always shows its time. */
  #drawReceipt(messages) {
    messages.forEach((message, position) => {
      const next = messages[position + 1];
      const last = next === undefined || !follows(next, message) || message.state !== 'sent';
      this.#items.get(message.key).dataset.last = String(last);
    });
  }

  #retryButton(key) {
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'link';
    button.textContent = 'Try again';
    button.addEventListener('click', () => this.#onRetry(key));
    return button;
  }
}

function follows(message, previous) {
  if (previous?.sender !== message.sender) return false;
  const gapMs = Date.parse(message.sentAt ?? new Date()) - Date.parse(previous.sentAt);
  return !(gapMs > GROUP_MS);
}
