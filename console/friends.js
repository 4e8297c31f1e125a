/** The contacts: their presence, their unread messages, and the actions on them. */
import { drawCallButton } from './call_button.js';
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
  constructor({ client, roster, chats, nameOf, onOpen, onCall, onRemove, onBlock }) {
    this.#roster = roster;
    this.#chats = chats;
    this.#presenceOf = (name) => client.presence(name);
    this.#rows = new Rows({
      listId: 'friends',
      templateId: 'friend-template',
      presenceOf: this.#presenceOf,
      nameOf,
      build: (row, name) => {
        row.querySelector('[data-action=open]').addEventListener('click', () => onOpen(name));
        row.querySelector('[data-action=call]').addEventListener('click', () => onCall(name));
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

  /** `openName`: the contact whose chat is open; `call`: the user's call, or null. */
  draw(openName, call) {
    this.#rows.show(this.#roster.friends);
    this.#rows.redrawAll();
    for (const name of this.#roster.friends) this.drawUnread(name);
    this.#rows.mark(openName);
    this.drawCall(call);
    this.#drawFrame();
  }

  drawUnread(name) {
    this.#rows.drawUnread(name, this.#chats.with(name).unread);
  }

  drawCall(call) {
    for (const name of this.#roster.friends)
      drawCallButton(this.#rows.get(name).querySelector('[data-action=call]'), name, call);
  }

  mark(name) {
    this.#rows.mark(name);
  }

  /** Focuses this contact, else the first; returns false if there is none. */
  focus(name) {
    return this.#rows.focus(name);
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
