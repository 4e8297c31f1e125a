/** The latest events, newest first. */
import { describeChange } from './wording.js';

const ENTRIES_MAX = 8;

export class Journal {
  #list = document.getElementById('journal');
  #seen = new Map();

  /** Adds an entry for each change of presence of other users. */
  constructor({ client, me }) {
    this.#list.replaceChildren();
    client.on('presence', (presence) => {
      const name = presence.user_id;
      const what = describeChange(this.#seen.get(name), presence);
      this.#seen.set(name, presence);
      if (what !== null && name !== me) this.add(name, what);
    });
  }

  add(name, what) {
    const entry = document.createElement('li');
    const time = document.createElement('time');
    const now = new Date();
    time.dateTime = now.toISOString();
    time.textContent = now.toLocaleTimeString([], {
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      hour12: false,
    });
    const who = document.createElement('strong');
    who.textContent = name;
    const text = document.createElement('span');
    text.append(who, ` ${what}`);
    entry.append(time, text);
    this.#list.prepend(entry);
    while (this.#list.childElementCount > ENTRIES_MAX) this.#list.lastElementChild.remove();
  }
}
