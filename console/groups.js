/** The groups: their members, their unread messages; opening one, and making a new one. */
import { Rows } from './rows.js';

export class Groups {
  #chats;
  #rows;

  /** `onOpen(chat)` and `onNew()` are the controls. */
  constructor({ chats, me, nameOf, onOpen, onNew }) {
    this.#chats = chats;
    this.#rows = new Rows({
      listId: 'groups',
      templateId: 'group-template',
      presenceOf: () => undefined,
      lineOf: (chatId) => describeMembers(chats.group(chatId)?.members ?? [], me, nameOf),
      build: (row, chatId) => {
        row
          .querySelector('[data-action=open]')
          .addEventListener('click', () => onOpen(chats.group(chatId)));
      },
    });
    document.getElementById('group-new').onclick = onNew;
  }

  /** `openId`: the group that is open, or null. */
  draw(openId) {
    const { groups } = this.#chats;
    this.#rows.show(groups.map(({ chatId }) => chatId));
    this.#rows.redrawAll();
    for (const { chatId, unread } of groups) this.#rows.drawUnread(chatId, unread);
    this.#rows.mark(openId);
    document.getElementById('groups-empty').hidden = groups.length > 0;
  }

  focus(chatId) {
    return this.#rows.focus(chatId);
  }

  dispose() {
    this.#rows.dispose();
  }
}

const NAMED_MAX = 3;

/** "you, bob and carol", "you, bob, carol and 4 more". */
function describeMembers(members, me, nameOf) {
  const names = ['you', ...members.filter((name) => name !== me).map(nameOf)];
  if (names.length === 1) return 'only you';
  const more = names.length - NAMED_MAX;
  const last = more > 0 ? `${more} more` : names.pop();
  return `${names.slice(0, NAMED_MAX).join(', ')} and ${last}`;
}
