/**
 * A list of people, one row each, made from a template.
 *
 * Rows are kept and changed in place, so that focus and reading position survive every update.
 */
import { dress, statusLine } from './wording.js';

/** "last seen" grows older without anybody saying so. */
const REDRAW_MS = 5000;

export class Rows {
  #list;
  #template;
  #presenceOf;
  #build;
  #rows = new Map();
  #ticker;

  /** `presenceOf(name)` may be undefined; `build(row, name)` wires a new row's controls. */
  constructor({ listId, templateId, presenceOf, build }) {
    this.#list = document.getElementById(listId);
    this.#template = document.getElementById(templateId);
    this.#presenceOf = presenceOf;
    this.#build = build;
    this.#ticker = setInterval(() => this.redrawAll(), REDRAW_MS);
  }

  get(name) {
    return this.#rows.get(name);
  }

  /** Makes the list show these people, in this order. */
  show(names) {
    for (const [name, row] of this.#rows) {
      if (names.includes(name)) continue;
      row.remove();
      this.#rows.delete(name);
    }
    names.forEach((name, position) => {
      const row = this.#rows.get(name) ?? this.#add(name);
      if (this.#list.children[position] !== row)
        this.#list.insertBefore(row, this.#list.children[position] ?? null);
    });
  }

  redraw(name) {
    const row = this.#rows.get(name);
    if (row === undefined) return;
    const presence = this.#presenceOf(name);
    row.dataset.status = presence?.status ?? 'unknown';
    const badge = row.querySelector('.call-badge');
    if (badge !== null) badge.hidden = presence?.in_call !== true;
    const line = statusLine(presence, Date.now());
    const status = row.querySelector('.person-status');
    if (status !== null && status.textContent !== line) status.textContent = line;
  }

  redrawAll() {
    for (const name of this.#rows.keys()) this.redraw(name);
  }

  dispose() {
    clearInterval(this.#ticker);
    this.#list.replaceChildren();
  }

  #add(name) {
    const row = this.#template.content.firstElementChild.cloneNode(true);
    row.dataset.user = name;
    dress(row.querySelector('.avatar'), name);
    row.querySelector('.person-name').textContent = name;
    this.#rows.set(name, row);
    this.#build(row, name);
    this.redraw(name);
    return row;
  }
}
