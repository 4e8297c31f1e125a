/** The contacts: their presence, their unread messages, and the actions on them. */
import { Menu } from './menu.js';
import { Rows } from './rows.js';

export class Friends {
  #roster;
  #chats;
  #rows;
  #count = document.getElementById('friends-count');
  #empty = document.getElementById('friends-empty');
  #presenceOf;

  /**
   * `onOpen(name)`, `onCall(name)`, `onRemove(name)` and `onBlock(name)` are the row's controls.
   */
  constructor({ client, roster, chats, onOpen, onCall, onRemove, onBlock }) {
    this.#roster = roster;
    this.#chats = chats;
    this.#presenceOf = (name) => client.presence(name);
    this.#rows = new Rows({
      listId: 'friends',
      templateId: 'friend-template',
      presenceOf: this.#presenceOf,
      build: (row, name) => {
        const call = row.querySelector('[data-action=call]');
        row.querySelector('[data-action=open]').addEventListener('click', () => onOpen(name));
        call.setAttribute('aria-label', `Call ${name}`);
        call.addEventListener('click', () => onCall(name));
        new Menu(row.querySelector('.menu'), `More about ${name}`, {
          remove: () => onRemove(name),
          block: () => onBlock(name),
        });
      },
    });
    client.on('presence', ({ user_id: name }) => {
      this.#rows.redraw(name);
      this.#drawFrame();
    });
  }

  draw() {
    this.#rows.show(this.#roster.friends);
    for (const name of this.#roster.friends) this.drawUnread(name);
    this.#drawFrame();
  }

  drawUnread(name) {
    const row = this.#rows.get(name);
    if (row === undefined) return;
    const unread = this.#chats.unread(name);
    const badge = row.querySelector('.unread');
    badge.hidden = unread === 0;
    badge.textContent = unread > 99 ? '99+' : String(unread);
    badge.setAttribute('aria-label', `${unread} unread`);
  }

  /** Marks the contact whose chat is open; null marks none. */
  mark(name) {
    for (const friend of this.#roster.friends) {
      const opener = this.#rows.get(friend)?.querySelector('[data-action=open]');
      opener?.setAttribute('aria-current', String(friend === name));
    }
  }

  dispose() {
    this.#rows.dispose();
  }

  #drawFrame() {
    const { friends } = this.#roster;
    const here = friends.filter((name) =>
      ['online', 'away'].includes(this.#presenceOf(name)?.status),
    );
    this.#count.textContent = friends.length === 0 ? '' : `${here.length} of ${friends.length} here`;
    this.#empty.hidden = friends.length > 0;
  }
}
