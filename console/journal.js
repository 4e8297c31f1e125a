/** The last things that happened, latest first. */
const ENTRIES_MAX = 8;

export class Journal {
  #list = document.getElementById('journal');

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

  clear() {
    this.#list.replaceChildren();
  }
}
