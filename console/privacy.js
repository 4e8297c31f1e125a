/** The privacy settings and the blocked users. */
import { drawAvatar } from './wording.js';

const SETTINGS = { presence_visibility: 'see-presence', last_seen_visibility: 'see-last-seen' };

const byId = (id) => document.getElementById(id);

export class Privacy {
  /** Whether the server's settings have been read. */
  shown = false;
  #backend;
  #roster;
  #onUnblock;
  #onProblem;

  constructor({ backend, roster, onUnblock, onChosen, onProblem }) {
    this.#backend = backend;
    this.#roster = roster;
    this.#onUnblock = onUnblock;
    this.#onProblem = onProblem;
    for (const [setting, id] of Object.entries(SETTINGS)) {
      byId(id).onchange = async () => {
        onChosen();
        await this.#change({ [setting]: byId(id).value });
      };
    }
    this.draw();
  }

  show(settings) {
    this.shown = true;
    for (const [setting, id] of Object.entries(SETTINGS)) byId(id).value = settings[setting];
  }

  draw() {
    const items = this.#roster.blocked.map((name) => this.#blockedRow(name));
    byId('blocked').replaceChildren(...items);
    byId('blocked-section').hidden = items.length === 0;
  }

  dispose() {
    byId('settings').open = false;
  }

  /** After an error the page shows the server's settings again. */
  async #change(changes) {
    try {
      this.show(await this.#backend.changeSettings(changes));
    } catch (error) {
      this.#onProblem(error);
      this.show(await this.#backend.settings());
    }
  }

  #blockedRow(name) {
    const row = byId('blocked-template').content.firstElementChild.cloneNode(true);
    drawAvatar(row.querySelector('.avatar'), name);
    row.querySelector('.person-name').textContent = name;
    const button = row.querySelector('button');
    button.setAttribute('aria-label', `Unblock ${name}`);
    button.addEventListener('click', () => this.#onUnblock(name));
    return row;
  }
}
