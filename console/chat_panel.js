/** The open chat: the contact, the messages, and the input. */
import { MessageList } from './message_list.js';
import { TypingNotice } from './typing_notice.js';
import { drawAvatar, statusLine } from './wording.js';

const REDRAW_MS = 5000;

const byId = (id) => document.getElementById(id);

export class ChatPanel {
  #client;
  #chats;
  #onClosed;
  #name = null;
  #opened = false;
  #notice;
  #list;
  #card = byId('chat');
  #input = byId('chat-input');
  #ticker = setInterval(() => this.#drawHead(), REDRAW_MS);
  #onVisible = () => this.#drawChat();

  /** `onCall(name)`: the call button. `onClosed()`: the user went back. */
  constructor({ client, chats, me, onCall, onClosed }) {
    this.#client = client;
    this.#chats = chats;
    this.#onClosed = onClosed;
    this.#list = new MessageList({
      list: byId('messages'),
      me,
      onRetry: (key) => chats.retry(this.#name, key),
    });
    this.#notice = new TypingNotice((typing) => chats.sendTyping(this.#name, typing));
    byId('chat-call').onclick = () => onCall(this.#name);
    byId('chat-back').onclick = () => this.close();
    byId('chat-earlier').onclick = () => this.#fetchEarlier();
    byId('chat-form').onsubmit = (event) => this.#submit(event);
    this.#input.oninput = () =>
      this.#input.value.trim() === '' ? this.#notice.stopped() : this.#notice.typed();
    this.#input.onblur = () => this.#notice.stopped();
    this.#input.onkeydown = (event) => {
      const sends = event.key === 'Enter' && !event.shiftKey && !event.isComposing;
      if (sends) this.#submit(event);
    };
    client.on('presence', ({ user_id: name }) => name === this.#name && this.#drawHead());
    client.on('state', ({ state }) => state === 'READY' && this.#enter());
    document.addEventListener('visibilitychange', this.#onVisible);
    this.#show();
  }

  get name() {
    return this.#name;
  }

  async open(name) {
    if (name !== this.#name) {
      this.#leave();
      this.#name = name;
      this.#list.clear();
      this.#show();
      this.#drawChat();
    }
    this.#input.focus();
    await this.#enter();
  }

  close() {
    if (this.#name === null) return;
    this.#leave();
    this.#name = null;
    this.#show();
    this.#onClosed();
  }

  /** Redraws if the chat with this contact is open. */
  onChanged(name) {
    if (name === this.#name) this.#drawChat();
  }

  dispose() {
    clearInterval(this.#ticker);
    document.removeEventListener('visibilitychange', this.#onVisible);
    this.#notice.sent();
    this.#name = null;
    this.#list.clear();
    this.#show();
  }

  #leave() {
    if (this.#name === null) return;
    this.#notice.stopped();
    this.#chats.close(this.#name);
    this.#opened = false;
    this.#input.value = '';
  }

  /** Opens the chat once there is a connection; the client keeps it open after reconnects. */
  async #enter() {
    const name = this.#name;
    if (name === null || this.#opened || this.#client.state !== 'READY') return;
    this.#opened = true;
    this.#showProblem(null);
    try {
      await this.#chats.open(name);
    } catch (error) {
      if (name !== this.#name || error.code === 'CLOSED') return;
      this.#opened = false;
      this.#showProblem(error.message);
    }
  }

  #submit(event) {
    event.preventDefault();
    const body = this.#input.value.trim();
    if (body === '' || this.#name === null) return;
    this.#input.value = '';
    this.#notice.sent();
    this.#chats.send(this.#name, body);
  }

  async #fetchEarlier() {
    try {
      await this.#chats.fetchEarlier(this.#name);
    } catch (error) {
      this.#showProblem(error.message);
    }
  }

  #show() {
    const open = this.#name !== null;
    this.#card.hidden = !open;
    byId('chat-none').hidden = open;
    byId('main-screen').classList.toggle('chatting', open);
    this.#showProblem(null);
    if (!open) return;
    byId('chat-name').textContent = this.#name;
    drawAvatar(byId('chat-avatar'), this.#name);
    byId('chat-call').setAttribute('aria-label', `Call ${this.#name}`);
    this.#input.placeholder = `Message ${this.#name}`;
    this.#drawHead();
  }

  #drawHead() {
    if (this.#name === null) return;
    const presence = this.#client.presence(this.#name);
    this.#card.dataset.status = presence?.status ?? 'unknown';
    const inCall = presence?.in_call ? ' · in a call' : '';
    byId('chat-status').textContent = statusLine(presence, Date.now()) + inCall;
  }

  #drawChat() {
    if (this.#name === null) return;
    const chat = this.#chats.with(this.#name);
    this.#list.draw(chat.messages);
    byId('chat-earlier').hidden = !chat.collecting || chat.first <= 1;
    byId('typing').textContent = chat.typing ? `${this.#name} is typing` : '';
    if (chat.collecting && document.visibilityState === 'visible')
      this.#chats.markRead(this.#name);
  }

  #showProblem(problem) {
    byId('chat-problem').hidden = problem === null;
    byId('chat-problem').textContent = problem ?? '';
  }
}
