/**
 * The page at `/`: pick a name, find people, write to them, call them.
 *
 * Two screens: joining, and the room (room.js).
 *
 * Address: `?name=bob` joins at once, `&watch=alice,carol` watches as well, `&chat=alice` opens the
 * chat with a contact.
 */
import { Names } from './names.js';
import { Room } from './room.js';

const SUGGESTIONS = 4;

const byId = (id) => document.getElementById(id);

class Page {
  #room = null;
  #name = null;
  #names = new Names((name) => this.#room?.meet(name));

  constructor() {
    byId('join-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#join(byId('join-name').value.trim());
    });
    window.addEventListener('pagehide', () => this.#room?.hangUp());
    this.#showJoin();
    const address = new URLSearchParams(location.search);
    const name = address.get('name')?.trim();
    const watch = (address.get('watch') ?? '').split(',').filter(Boolean);
    if (name) this.#join(name, { watch, chat: address.get('chat') });
  }

  async #join(name, arrival = {}) {
    if (name === '' || this.#room !== null) return;
    byId('join-problem').hidden = true;
    this.#name = name;
    this.#room = new Room({
      name,
      names: this.#names,
      onLeave: () => this.#leave(),
      onEnded: (error) => this.#ended(error),
      onTitle: (note) => this.#setTitle(note),
      onChat: (chat) => setAddress(chat === null ? { name } : { name, chat }),
    });
    setAddress(arrival.chat ? { name, chat: arrival.chat } : { name });
    byId('join').hidden = true;
    byId('room').hidden = false;
    this.#setTitle('');
    await this.#room.enter(arrival);
  }

  #leave() {
    const room = this.#room;
    this.#room = null;
    room?.leave();
    setAddress({});
    this.#showJoin();
    byId('join-name').focus();
  }

  /** The server does not want this client back, or never wanted it. */
  #ended(error) {
    if (this.#room === null) return;
    this.#leave();
    byId('join-problem').hidden = false;
    byId('join-problem').textContent = error.message;
  }

  #setTitle(note) {
    document.title = `${note}${this.#name} · Rollcall`;
  }

  #showJoin() {
    byId('join').hidden = false;
    byId('room').hidden = true;
    document.title = 'Rollcall';
    const chips = this.#names.suggest(SUGGESTIONS).map((name) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.addEventListener('click', () => this.#join(name));
      const item = document.createElement('li');
      item.append(button);
      return item;
    });
    byId('suggestions').replaceChildren(...chips);
  }
}

/** A reload joins again under the same name, in the same chat; after leaving it does not. */
function setAddress(parameters) {
  const query = new URLSearchParams(parameters).toString();
  history.replaceState(null, '', query === '' ? '/' : `/?${query}`);
}

new Page();
