/**
 * The list of people being watched.
 *
 * Rows are kept and changed in place, so that focus and reading position survive every update.
 */
import { happening, hueOf, initialOf, statusLine } from './wording.js';

/** The server allows 20 subscriptions; one of them is for the user's own presence. */
export const PEOPLE_MAX = 19;

/** "last seen" grows older without anybody saying so. */
const REDRAW_MS = 5000;

export class People {
  #client;
  #journal;
  #onForget;
  #rows = new Map();
  #seen = new Map();
  #list = document.getElementById('people');
  #template = document.getElementById('person-template');
  #ticker;

  constructor({ client, journal, onForget }) {
    this.#client = client;
    this.#journal = journal;
    this.#onForget = onForget;
    client.on('presence', (presence) => this.#update(presence));
    this.#ticker = setInterval(() => this.#redrawAll(), REDRAW_MS);
    this.#redrawFrame();
  }

  get names() {
    return [...this.#rows.keys()];
  }

  /** Those who could come. */
  get absent() {
    return this.names.filter((name) => !this.#isHere(name));
  }

  /** Begins to watch; throws what the person who asked for it should read. */
  async watch(names) {
    const added = names.filter((name) => !this.#rows.has(name));
    if (this.#rows.size + added.length > PEOPLE_MAX)
      throw new Error(`At most ${PEOPLE_MAX} people can be watched.`);
    for (const name of added) this.#addRow(name);
    this.#redrawFrame();
    if (added.length > 0) await this.#client.subscribePresence(added);
  }

  dispose() {
    clearInterval(this.#ticker);
    this.#list.replaceChildren();
  }

  #addRow(name) {
    const row = this.#template.content.firstElementChild.cloneNode(true);
    const avatar = row.querySelector('.avatar');
    avatar.textContent = initialOf(name);
    avatar.dataset.hue = hueOf(name);
    row.dataset.user = name;
    row.querySelector('.person-name').textContent = name;
    const forget = row.querySelector('[data-action=forget]');
    forget.setAttribute('aria-label', `Stop watching ${name}`);
    forget.addEventListener('click', () => this.#forget(name));
    this.#rows.set(name, row);
    this.#list.append(row);
    this.#redraw(name);
  }

  #forget(name) {
    this.#rows.get(name).remove();
    this.#rows.delete(name);
    this.#seen.delete(name);
    this.#onForget(name);
    this.#redrawFrame();
    this.#client.unsubscribePresence([name]).catch(() => {});
  }

  #update(presence) {
    const name = presence.user_id;
    if (!this.#rows.has(name)) return;
    const what = happening(this.#seen.get(name), presence);
    this.#seen.set(name, presence);
    this.#redraw(name);
    this.#redrawFrame();
    if (what !== null) this.#journal.add(name, what);
  }

  #redraw(name) {
    const presence = this.#client.presence(name);
    const row = this.#rows.get(name);
    row.dataset.status = presence?.status ?? 'unknown';
    const line = statusLine(presence, Date.now());
    const status = row.querySelector('.person-status');
    if (status.textContent !== line) status.textContent = line;
  }

  #redrawAll() {
    for (const name of this.#rows.keys()) this.#redraw(name);
  }

  #redrawFrame() {
    const here = this.names.filter((name) => this.#isHere(name)).length;
    const all = this.#rows.size;
    document.getElementById('people-count').textContent = all === 0 ? '' : `${here} of ${all} here`;
    document.getElementById('people-empty').hidden = all > 0;
  }

  #isHere(name) {
    return ['online', 'away'].includes(this.#client.presence(name)?.status);
  }
}
