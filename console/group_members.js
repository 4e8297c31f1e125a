/** The dialog with the members of a group: add one, remove one, leave; admins also appoint others. */
import { confirmAction } from './confirm.js';
import { Rows } from './rows.js';
import { statusLine } from './wording.js';

const byId = (id) => document.getElementById(id);

export class GroupMembers {
  #dialog = byId('members-dialog');
  #chats;
  #me;
  #rows;
  #chat = null;

  /** `onProblem(error)`: the user could not leave. */
  constructor({ client, chats, me, nameOf, onProblem }) {
    this.#chats = chats;
    this.#me = me;
    const presenceOf = (name) => client.presence(name);
    this.#rows = new Rows({
      listId: 'members',
      templateId: 'member-template',
      presenceOf,
      nameOf,
      lineOf: (name) => this.#describe(name, presenceOf(name)),
      build: (row, name) => this.#buildRow(row, name),
    });
    client.on('presence', ({ user_id: name }) => this.#rows.redraw(name));
    byId('members-close').onclick = () => this.#dialog.close();
    byId('members-leave').onclick = () => {
      this.#dialog.close();
      this.#leave(this.#chat).catch(onProblem);
    };
    byId('members-can-add').onchange = ({ target }) =>
      this.#attempt(() => chats.letMembersAdd(this.#chat, target.checked));
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
    const { members, membersCanAdd } = this.#chat;
    const isAdmin = this.#isAdmin(this.#me);
    this.#rows.show(members);
    this.#rows.redrawAll();
    for (const name of members) this.#drawButtons(name, isAdmin);
    byId('members-form').hidden = !isAdmin && !membersCanAdd;
    byId('members-rule').hidden = !isAdmin;
    byId('members-can-add').checked = membersCanAdd;
  }

  dispose() {
    this.#dialog.close();
    this.#rows.dispose();
  }

  #isAdmin(name) {
    return this.#chat.admins.includes(name);
  }

  #describe(name, presence) {
    const line = name === this.#me ? 'you' : statusLine(presence, Date.now());
    return this.#isAdmin(name) ? `admin · ${line}` : line;
  }

  #buildRow(row, name) {
    const onClick = (action, act) => {
      row
        .querySelector(`[data-action=${action}]`)
        .addEventListener('click', () => this.#attempt(act));
    };
    onClick('remove', () => this.#chats.removeMember(this.#chat, name));
    onClick('appoint', () => this.#chats.setAdmin(this.#chat, name, !this.#isAdmin(name)));
  }

  /** Only admins may do this, and not to themselves: they leave. */
  #drawButtons(name, isAdmin) {
    const row = this.#rows.get(name);
    const [appoint, remove] = ['appoint', 'remove'].map((action) =>
      row.querySelector(`[data-action=${action}]`),
    );
    appoint.hidden = !isAdmin || name === this.#me;
    remove.hidden = appoint.hidden;
    appoint.textContent = this.#isAdmin(name) ? 'Not admin' : 'Make admin';
    appoint.setAttribute('aria-label', `${appoint.textContent}: ${name}`);
    remove.setAttribute('aria-label', `Remove ${name}`);
  }

  async #leave(chat) {
    const agreed = await confirmAction({
      title: `Leave ${chat.title}?`,
      text: 'You no longer see its messages. A member can add you again.',
      action: 'Leave',
    });
    if (agreed) await this.#chats.removeMember(chat, this.#me);
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
