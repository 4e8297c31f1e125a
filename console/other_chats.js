/** The direct chats with users who are not contacts: anybody who is not blocked may write. */
import { Rows } from './rows.js';

export class OtherChats {
  #chats;
  #roster;
  #rows;

  /** `onOpen(name)`: the user opens the chat with this user. */
  constructor({ client, chats, roster, nameOf, onOpen }) {
    this.#chats = chats;
    this.#roster = roster;
    this.#rows = new Rows({
      listId: 'other-chats',
      templateId: 'group-template',
      presenceOf: (name) => client.presence(name),
      nameOf,
      build: (row, name) => {
        row.classList.remove('group');
        row.querySelector('[data-action=open]').addEventListener('click', () => onOpen(name));
      },
    });
    client.on('presence', ({ user_id: name }) => this.#rows.redraw(name));
  }

  /** `openName`: the user whose chat is open, or null. */
  draw(openName) {
    const { blocked } = this.#roster;
    const isShown = (name) => !this.#roster.isFriend(name) && !blocked.includes(name);
    const names = this.#chats.peers.filter(isShown);
    this.#rows.show(names);
    for (const name of names) this.#rows.drawUnread(name, this.#chats.with(name).unread);
    this.#rows.mark(openName);
    document.getElementById('other-chats-section').hidden = names.length === 0;
  }

  focus(name) {
    return this.#rows.focus(name);
  }

  dispose() {
    this.#rows.dispose();
  }
}
