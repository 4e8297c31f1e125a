/** The dialog with the members of a group: add one, remove one, leave. */
import { Rows } from './rows.js';
import { statusLine } from './wording.js';

const byId = (id) => document.getElementById(id);

export class GroupMembers {
  #dialog = byId('members-dialog');
  #chats;
  #me;
  #rows;
  #chat = null;

  /** `onLeave(chat)`: the user wants to leave it. */
  constructor({ client, chats, me, onLeave }) {
    this.#chats = chats;
    this.#me = me;
    const presenceOf = (name) => client.presence(name);
    this.#rows = new Rows({
      listId: 'members',
      templateId: 'member-template',
      presenceOf,
      lineOf: (name) => (name === me ? 'you' : statusLine(presenceOf(name), Date.now())),
      build: (row, name) => this.#buildRow(row, name),
    });
    client.on('presence', ({ user_id: name }) => this.#rows.redraw(name));
    byId('members-close').onclick = () => this.#dialog.close();
    byId('members-leave').onclick = () => {
      this.#dialog.close();
      onLeave(this.#chat);
    };
    byId('members-form').onsubmit = (event) => this.#submit(event);
    this.#dialog.onclose = () => this.#rows.show([]);
  }

  open(chat) {
    this.#chat = chat;
    byId('members-title').textContent = `Members of ${chat.title}`;
    byId('members-name').value = '';
    this.#showProblem(null);
    this.#dialog.showModal();
    this.draw();
  }

  /** Redraws the members if this group is shown. */
  onChanged(chat) {
    if (chat === this.#chat && this.#dialog.open) this.draw();
  }

  draw() {
    this.#rows.show(this.#chat.members);
  }

  dispose() {
    this.#dialog.close();
    this.#rows.dispose();
  }

  #buildRow(row, name) {
    const remove = row.querySelector('[data-action=remove]');
    remove.hidden = name === this.#me;
    remove.setAttribute('aria-label', `Remove ${name}`);
    remove.addEventListener('click', () =>
      this.#attempt(() => this.#chats.removeMember(this.#chat, name)),
    );
  }

  #submit(event) {
    event.preventDefault();
    const name = byId('members-name').value.trim();
    if (name === '') return;
    this.#attempt(async () => {
      await this.#chats.addMember(this.#chat, name);
      byId('members-name').value = '';
    });
  }

  async #attempt(action) {
    this.#showProblem(null);
    try {
      await action();
    } catch (error) {
      this.#showProblem(error.message);
    }
  }

  #showProblem(problem) {
    byId('members-problem').hidden = problem === null;
    byId('members-problem').textContent = problem ?? '';
  }
}
