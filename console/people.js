/**
 * People who are not contacts yet: other tabs of this browser, and users with a pending request.
 */
import { Rows } from './rows.js';

export class People {
  #client;
  #roster;
  #rows;
  #section = document.getElementById('others');

  /** `onAsk(name)` and `onForget(name)` are the row's controls. */
  constructor({ client, roster, onAsk, onForget }) {
    this.#client = client;
    this.#roster = roster;
    this.#rows = new Rows({
      listId: 'people',
      templateId: 'person-template',
      presenceOf: (name) => client.presence(name),
      build: (row, name) => {
        row.querySelector('[data-action=ask]').addEventListener('click', () => onAsk(name));
        row.querySelector('[data-action=forget]').addEventListener('click', () => onForget(name));
      },
    });
    client.on('presence', ({ user_id: name }) => this.#rows.redraw(name));
    this.draw();
  }

  /** Those who are not online. */
  get absent() {
    return this.#roster.others.filter(
      (name) => !['online', 'away'].includes(this.#client.presence(name)?.status),
    );
  }

  draw() {
    const names = this.#roster.others;
    this.#rows.show(names);
    this.#section.hidden = names.length === 0;
    for (const name of names) this.#drawControls(name);
  }

  dispose() {
    this.#rows.dispose();
  }

  #drawControls(name) {
    const row = this.#rows.get(name);
    const asked = this.#roster.isRequested(name);
    const ask = row.querySelector('[data-action=ask]');
    ask.disabled = asked;
    ask.textContent = asked ? 'Asked' : 'Add';
    ask.setAttribute('aria-label', asked ? `${name} was asked` : `Add ${name}`);
    row
      .querySelector('[data-action=forget]')
      .setAttribute('aria-label', asked ? `Withdraw the request to ${name}` : `Forget ${name}`);
  }
}
