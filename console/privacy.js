/** The user's settings on the server, and the blocked users. */
import { drawAvatar } from './wording.js';

const SETTINGS = {
  presence_visibility: 'see-presence',
  last_seen_visibility: 'see-last-seen',
  group_adds: 'may-add-me',
};

const byId = (id) => document.getElementById(id);

export class Privacy {
  /** Whether the server's settings have been read. */
  shown = false;
  #api;
  #roster;
  #onUnblock;
  #onShown;
  #onProblem;

  /** `onShown(settings)`: these are the user's settings now. */
  constructor({ api, roster, onUnblock, onChosen, onShown, onProblem }) {
    this.#api = api;
    this.#roster = roster;
    this.#onUnblock = onUnblock;
    this.#onShown = onShown;
    this.#onProblem = onProblem;
    for (const [setting, id] of Object.entries(SETTINGS)) {
      byId(id).onchange = async () => {
        onChosen();
        await this.#change({ [setting]: byId(id).value });
      };
    }
    byId('display-name').onchange = ({ target }) =>
      this.#change({ display_name: target.value.trim() || null });
    byId('read-receipts').onchange = ({ target }) => this.#change({ read_receipts: target.checked });
    this.draw();
  }

  show(settings) {
    this.shown = true;
    byId('read-receipts').checked = settings.read_receipts;
    byId('display-name').value = settings.display_name ?? '';
    this.#onShown(settings);
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
      this.show(await this.#api.updateMe(changes));
    } catch (error) {
      this.#onProblem(error);
      this.show(await this.#api.me());
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
