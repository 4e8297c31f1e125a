/** The open chat: its head, the messages, and the input. */
import { TypingNotice } from '/client/typing_notice.js';
import { MessageList } from './message_list.js';
import { drawAvatar, sentNote, statusLine, typingLine } from './wording.js';

const REDRAW_MS = 5000;

const byId = (id) => document.getElementById(id);

export class ChatPanel {
  #client;
  #chats;
  #me;
  #nameOf;
  #onClosed;
  #chat = null;
  #opened = false;
  #notice;
  #list;
  #card = byId('chat');
  #input = byId('chat-input');
  #ticker = setInterval(() => this.#drawHead(), REDRAW_MS);
  #onVisible = () => this.#drawChat();
  #onKey = (event) => this.#closeByKey(event);

  /**
   * `onCall(name)` and `onMembers(chat)`: the buttons in the head. `onClosed(chat)`: the user has
   * closed it.
   */
  constructor({ client, chats, me, nameOf, onCall, onMembers, onClosed }) {
    this.#client = client;
    this.#chats = chats;
    this.#me = me;
    this.#nameOf = nameOf;
    this.#onClosed = onClosed;
    this.#list = new MessageList({
      me,
      nameOf,
      onRetry: (key) => chats.retry(this.#chat, key),
      onEnd: () => this.#drawChat(),
    });
    this.#notice = new TypingNotice((typing) => chats.sendTyping(this.#chat, typing));
    byId('chat-call').onclick = () => onCall(this.#chat.peer);
    byId('chat-members').onclick = () => onMembers(this.#chat);
    byId('chat-back').onclick = () => this.close();
    byId('chat-earlier').onclick = () => this.#fetchEarlier();
    this.#listenToInput();
    client.on('presence', ({ user_id: name }) => this.#onPresence(name));
    client.on('state', ({ state }) => state === 'READY' && this.#enter());
    document.addEventListener('visibilitychange', this.#onVisible);
    document.addEventListener('keydown', this.#onKey);
    this.#show();
  }

  /** The open chat, or null. */
  get chat() {
    return this.#chat;
  }

  async open(chat) {
    if (chat !== this.#chat) {
      this.#leave();
      this.#chat = chat;
      this.#list.clear();
      this.#input.value = chat.draft;
      this.#show();
      this.#drawChat();
    }
    this.#input.focus();
    await this.#enter();
  }

  close() {
    const chat = this.#chat;
    if (chat === null) return;
    this.#leave();
    this.#chat = null;
    this.#show();
    this.#onClosed(chat);
  }

  /** Redraws if this chat is open. */
  onChanged(chat) {
    if (chat !== this.#chat) return;
    this.#drawHead();
    this.#drawChat();
  }

  dispose() {
    clearInterval(this.#ticker);
    document.removeEventListener('visibilitychange', this.#onVisible);
    document.removeEventListener('keydown', this.#onKey);
    this.#notice.sent();
    this.#chat = null;
    this.#list.dispose();
    this.#show();
  }

  #listenToInput() {
    const input = this.#input;
    byId('chat-form').onsubmit = (event) => this.#submit(event);
    input.oninput = () => (input.value.trim() === '' ? this.#notice.stopped() : this.#notice.typed());
    input.onblur = () => this.#notice.stopped();
    input.onkeydown = (event) => {
      const sends = event.key === 'Enter' && !event.shiftKey && !event.isComposing;
      if (sends) this.#submit(event);
    };
  }

  #leave() {
    if (this.#chat === null) return;
    this.#notice.stopped();
    this.#chat.draft = this.#input.value;
    this.#chats.close(this.#chat);
    this.#opened = false;
    this.#input.value = '';
  }

  /** Opens the chat once there is a connection; the client keeps it open after reconnects. */
  async #enter() {
    const chat = this.#chat;
    if (chat === null || this.#opened || this.#client.state !== 'READY') return;
    this.#opened = true;
    this.#showProblem(null);
    try {
      await this.#chats.open(chat);
    } catch (error) {
      if (chat !== this.#chat || error.code === 'CLOSED') return;
      this.#opened = false;
      this.#showProblem(error.message);
    }
  }

  /** Menus and dialogs use Escape before the chat does. */
  #closeByKey(event) {
    const taken = event.defaultPrevented || event.isComposing || document.querySelector('dialog[open]');
    if (event.key === 'Escape' && !taken) this.close();
  }

  #submit(event) {
    event.preventDefault();
    const body = this.#input.value.trim();
    if (body === '' || this.#chat === null) return;
    this.#input.value = '';
    this.#notice.sent();
    this.#chats.send(this.#chat, body);
  }

  async #fetchEarlier() {
    try {
      await this.#chats.fetchEarlier(this.#chat);
    } catch (error) {
      this.#showProblem(error.message);
    }
  }

  #show() {
    const chat = this.#chat;
    this.#card.hidden = chat === null;
    byId('chat-none').hidden = chat !== null;
    byId('main-screen').classList.toggle('chatting', chat !== null);
    this.#showProblem(null);
    if (chat === null) return;
    this.#card.classList.toggle('group', chat.isGroup);
    byId('chat-members').hidden = !chat.isGroup;
    this.#drawHead();
  }

  #onPresence(name) {
    if (name === this.#chat?.peer || this.#chat?.members.includes(name)) this.onChanged(this.#chat);
  }

  #drawHead() {
    const chat = this.#chat;
    if (chat === null) return;
    const title = this.#nameOf(chat.title);
    byId('chat-name').textContent = title;
    drawAvatar(byId('chat-avatar'), chat.title, title);
    this.#input.placeholder = `Message ${title}`;
    const presence = chat.isGroup ? undefined : this.#client.presence(chat.peer);
    this.#card.dataset.status = presence?.status ?? 'unknown';
    byId('chat-status').textContent = chat.isGroup
      ? this.#membersLine(chat)
      : statusLine(presence, Date.now()) + (presence?.in_call ? ' · in a call' : '');
  }

  #membersLine({ members }) {
    const isHere = (name) => ['online', 'away'].includes(this.#client.presence(name)?.status);
    const here = members.filter((name) => name === this.#me || isHere(name)).length;
    return members.length === 0 ? '…' : `${members.length} members · ${here} here`;
  }

  #drawChat() {
    const chat = this.#chat;
    if (chat === null) return;
    const presence = chat.isGroup ? undefined : this.#client.presence(chat.peer);
    this.#list.draw(chat.messages, {
      showAuthors: chat.isGroup,
      noteOf: (message) => sentNote(message, chat, presence),
    });
    byId('chat-earlier').hidden = !chat.list?.hasEarlier;
    byId('typing').textContent = typingLine([...chat.typing].map(this.#nameOf));
    const seen = chat.isLoaded && this.#list.atEnd && document.visibilityState === 'visible';
    if (seen) this.#chats.markRead(chat);
  }

  #showProblem(problem) {
    byId('chat-problem').hidden = problem === null;
    byId('chat-problem').textContent = problem ?? '';
  }
}
