/**
 * The messages of a chat, with a line for each day.
 *
 * While the user is at the end, the list stays there. Else it counts the new messages on a button
 * that leads to them.
 */
import { EndFollower } from './end_follower.js';
import { textWithLinks } from './message_text.js';
import { dayOf, timeOf } from './wording.js';

/** Messages of one user within this time are shown as a group. */
const GROUP_MS = 120000;

const byId = (id) => document.getElementById(id);

export class MessageList {
  #list = byId('message-items');
  #pill = byId('new-messages');
  #follower;
  #me;
  #nameOf;
  #onRetry;
  #items = new Map();
  #lastSeenKey = null;

  /** `onRetry(key)`: the user sends a failed message again. `onEnd()`: the user came to the end. */
  constructor({ me, nameOf, onRetry, onEnd }) {
    this.#me = me;
    this.#nameOf = nameOf;
    this.#onRetry = onRetry;
    this.#follower = new EndFollower({ box: byId('messages'), content: this.#list, onEnd });
    this.#pill.onclick = () => {
      this.#follower.toEnd();
      onEnd();
      byId('chat-input').focus();
    };
  }

  get atEnd() {
    return this.#follower.atEnd;
  }

  clear() {
    this.#items.clear();
    this.#lastSeenKey = null;
    this.#list.replaceChildren();
    this.#pill.hidden = true;
    this.#follower.toEnd();
  }

  dispose() {
    this.clear();
    this.#follower.dispose();
  }

  /** `noteOf(message)` describes how far a message of the user has come. */
  draw(messages, { showAuthors, noteOf }) {
    const last = messages.at(-1);
    const wrote = last?.sender_id === this.#me && !this.#items.has(last.key);
    this.#follower.keep(() => this.#arrange(messages, showAuthors, noteOf));
    if (wrote) this.#follower.toEnd();
    if (this.atEnd) this.#lastSeenKey = last?.key ?? null;
    this.#drawPill(messages);
  }

  #arrange(messages, showAuthors, noteOf) {
    const wanted = messages.flatMap((message, position) => {
      const previous = messages[position - 1];
      const item = this.#items.get(message.key) ?? this.#add(message, showAuthors);
      this.#drawItem(item, message, { previous, next: messages[position + 1], noteOf });
      const startsDay = dayKey(message) !== (previous && dayKey(previous));
      return startsDay ? [this.#dayLine(message), item] : [item];
    });
    const keep = new Set(wanted);
    for (const [key, item] of this.#items) if (!keep.has(item)) this.#items.delete(key);
    for (const child of [...this.#list.children]) if (!keep.has(child)) child.remove();
    wanted.forEach((item, position) => {
      if (this.#list.children[position] !== item)
        this.#list.insertBefore(item, this.#list.children[position] ?? null);
    });
  }

  #dayLine(message) {
    const key = `day ${dayKey(message)}`;
    const line = this.#items.get(key) ?? document.createElement('li');
    line.className = 'day';
    line.textContent = dayOf(message.sent_at ?? new Date(), new Date());
    this.#items.set(key, line);
    return line;
  }

  #add({ key, sender_id: sender }, showAuthors) {
    const mine = sender === this.#me;
    const item = document.createElement('li');
    item.className = 'message';
    item.dataset.mine = String(mine);
    const author = document.createElement('span');
    author.className = showAuthors && !mine ? 'author' : 'visually-hidden';
    author.dir = 'auto';
    author.textContent = mine ? 'You' : this.#nameOf(sender);
    const bubble = document.createElement('p');
    bubble.className = 'bubble';
    bubble.dir = 'auto';
    const note = document.createElement('span');
    note.className = 'message-note';
    item.append(author, bubble, note);
    this.#items.set(key, item);
    return item;
  }

  /** Only the last message of a group always shows its time. */
  #drawItem(item, message, { previous, next, noteOf }) {
    item.dataset.state = message.state;
    drawBody(item, message);
    item.dataset.follows = String(follows(message, previous));
    item.dataset.last = String(!follows(next, message) || message.state !== 'sent');
    const time = message.sent_at === null ? '' : timeOf(message.sent_at);
    const progress = message.sender_id === this.#me ? noteOf(message) : '';
    const text = [time, progress].filter(Boolean).join(' · ');
    const note = item.querySelector('.message-note');
    if (note.textContent === text) return;
    note.textContent = text;
    if (message.state === 'failed') note.append(this.#retryButton(message.key));
  }

  #drawPill(messages) {
    const seen = messages.findIndex(({ key }) => key === this.#lastSeenKey);
    const fresh = messages.slice(seen + 1).filter(({ sender_id: sender }) => sender !== this.#me).length;
    this.#pill.hidden = this.atEnd || fresh === 0;
    this.#pill.textContent = fresh === 1 ? '1 new message' : `${fresh} new messages`;
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

/** A message is drawn once, and once more if it is deleted. */
function drawBody(item, { body, deleted = false }) {
  if (item.dataset.deleted === String(deleted)) return;
  item.dataset.deleted = String(deleted);
  const shown = deleted ? ['This message was deleted.'] : textWithLinks(body);
  item.querySelector('.bubble').replaceChildren(...shown);
}

const dayKey = ({ sent_at: sentAt }) => new Date(sentAt ?? Date.now()).toDateString();

function follows(message, previous) {
  if (message === undefined || previous?.sender_id !== message.sender_id) return false;
  if (dayKey(message) !== dayKey(previous)) return false;
  const gapMs = Date.parse(message.sent_at ?? new Date()) - Date.parse(previous.sent_at);
  return !(gapMs > GROUP_MS);
}
