/** The incoming contact requests, with buttons to answer them. */
import { Rows } from './rows.js';

export class Requests {
  #roster;
  #rows;
  #section = document.getElementById('requests-section');

  constructor({ client, roster, onAccept, onDecline }) {
    this.#roster = roster;
    this.#rows = new Rows({
      listId: 'requests',
      templateId: 'request-template',
      presenceOf: (name) => client.presence(name),
      build: (row, name) => {
        for (const [action, label, answer] of [
          ['accept', 'Accept', onAccept],
          ['decline', 'Decline', onDecline],
        ]) {
          const button = row.querySelector(`[data-action=${action}]`);
          button.setAttribute('aria-label', `${label} ${name}`);
          button.addEventListener('click', () => answer(name));
        }
      },
    });
    client.on('presence', ({ user_id: name }) => this.#rows.redraw(name));
    this.draw();
  }

  draw() {
    this.#rows.show(this.#roster.incoming);
    this.#section.hidden = this.#roster.incoming.length === 0;
  }

  dispose() {
    this.#rows.dispose();
  }
}
