/** The open chat: who it is with, what was written, and the line to write on. */
import { MessageList } from './message_list.js';
import { TypingSign } from './typing_sign.js';
import { dress, statusLine } from './wording.js';

const REDRAW_MS = 5000;

const byId = (id) => document.getElementById(id);

export class Chat {
  #client;
  #talks;
  #onClosed;
  #name = null;
  #opened = false;
  #sign;
  #list;
  #card = byId('chat');
  #input = byId('chat-input');
  #ticker = setInterval(() => this.#drawHead(), REDRAW_MS);
  #onVisible = () => this.#drawTalk();

  /** `onCall(name)`: the call button. `onClosed()`: the user went back. */
  constructor({ client, talks, me, onCall, onClosed }) {
    this.#client = client;
    this.#talks = talks;
    this.#onClosed = onClosed;
    this.#list = new MessageList({
      list: byId('messages'),
      me,
      onAgain: (key) => talks.sendAgain(this.#name, key),
    });
    this.#sign = new TypingSign((typing) => talks.sayTyping(this.#name, typing));
    byId('chat-call').onclick = () => onCall(this.#name);
    byId('chat-back').onclick = () => this.close();
    byId('chat-earlier').onclick = () => this.#fetchEarlier();
    byId('chat-form').onsubmit = (event) => this.#submit(event);
    this.#input.oninput = () =>
      this.#input.value.trim() === '' ? this.#sign.stopped() : this.#sign.typed();
    this.#input.onblur = () => this.#sign.stopped();
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
      this.#drawTalk();
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

  /** The talk with somebody changed. */
  changed(name) {
    if (name === this.#name) this.#drawTalk();
  }

  dispose() {
    clearInterval(this.#ticker);
    document.removeEventListener('visibilitychange', this.#onVisible);
    this.#sign.sent();
    this.#name = null;
    this.#list.clear();
    this.#show();
  }

  #leave() {
    if (this.#name === null) return;
    this.#sign.stopped();
    this.#talks.close(this.#name);
    this.#opened = false;
    this.#input.value = '';
  }

  /** Once is enough: the client keeps an open chat open. Without a connection, when there is one. */
  async #enter() {
    const name = this.#name;
    if (name === null || this.#opened || this.#client.state !== 'READY') return;
    this.#opened = true;
    this.#say(null);
    try {
      await this.#talks.open(name);
    } catch (error) {
      if (name !== this.#name || error.code === 'CLOSED') return;
      this.#opened = false;
      this.#say(error.message);
    }
  }

  #submit(event) {
    event.preventDefault();
    const body = this.#input.value.trim();
    if (body === '' || this.#name === null) return;
    this.#input.value = '';
    this.#sign.sent();
    this.#talks.send(this.#name, body);
  }

  async #fetchEarlier() {
    try {
      await this.#talks.fetchEarlier(this.#name);
    } catch (error) {
      this.#say(error.message);
    }
  }

  #show() {
    const open = this.#name !== null;
    this.#card.hidden = !open;
    byId('chat-none').hidden = open;
    byId('room').classList.toggle('chatting', open);
    this.#say(null);
    if (!open) return;
    byId('chat-name').textContent = this.#name;
    dress(byId('chat-avatar'), this.#name);
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

  #drawTalk() {
    if (this.#name === null) return;
    const talk = this.#talks.with(this.#name);
    this.#list.draw(talk.messages);
    byId('chat-earlier').hidden = !talk.collecting || talk.first <= 1;
    byId('typing').textContent = talk.typing ? `${this.#name} is typing` : '';
    if (talk.collecting && document.visibilityState === 'visible')
      this.#talks.markRead(this.#name);
  }

  #say(problem) {
    byId('chat-problem').hidden = problem === null;
    byId('chat-problem').textContent = problem ?? '';
  }
}
