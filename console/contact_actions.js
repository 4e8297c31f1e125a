/** What the user does with contacts: ask by name, remove, block. It asks first where much is lost. */
import { confirmAction } from './confirm.js';
import { Toast } from './toast.js';

const byId = (id) => document.getElementById(id);

export class ContactActions {
  #roster;
  #names;
  #attempt;
  #toast = new Toast();

  /** `attempt(action)` runs an action and shows its error. */
  constructor({ roster, names, attempt }) {
    this.#roster = roster;
    this.#names = names;
    this.#attempt = attempt;
    byId('ask-form').onsubmit = (event) => this.#submitAsk(event);
  }

  async remove(name) {
    const agreed = await confirmAction({
      title: `Remove ${name}?`,
      text: 'You are no longer contacts. Your messages stay.',
      action: 'Remove',
    });
    if (agreed) await this.#forgetAfter(name, this.#roster.remove(name));
  }

  async block(name) {
    const agreed = await confirmAction({
      title: `Block ${name}?`,
      text: 'You are no longer contacts. They cannot see you, write to you or call you, and are not told.',
      action: 'Block',
    });
    if (!agreed) return;
    await this.#forgetAfter(name, this.#roster.block(name));
    this.#toast.show(`${name} is blocked.`, () => this.#attempt(() => this.#undoBlock(name)));
  }

  /** A user who is neither a contact nor asked is no longer shown. */
  forget(name) {
    return this.#forgetAfter(name, this.#roster.forget(name));
  }

  dispose() {
    this.#toast.hide();
  }

  /** The contact has ended; the user can be asked again. */
  async #undoBlock(name) {
    await this.#roster.unblock(name);
    this.#names.remember(name);
    await this.#roster.watch([name]);
  }

  /** A user who was removed is not suggested again. */
  async #forgetAfter(name, removal) {
    await removal;
    this.#names.forget(name);
  }

  #submitAsk(event) {
    event.preventDefault();
    const input = byId('ask-name');
    const name = input.value.trim();
    if (name === '') return;
    input.value = '';
    this.#attempt(async () => {
      await this.#roster.request(name);
      this.#names.remember(name);
    });
  }
}
