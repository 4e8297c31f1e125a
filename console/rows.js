/**
 * A list of people or groups, one row each, made from a template.
 *
 * Rows are changed in place, so that an update keeps the focus and the scroll position.
 */
import { drawAvatar, statusLine } from './wording.js';

/** "last seen" changes with time, so rows are redrawn. */
const REDRAW_MS = 5000;

export class Rows {
  #list;
  #template;
  #presenceOf;
  #nameOf;
  #lineOf;
  #build;
  #rows = new Map();
  #ticker;

  /**
   * `presenceOf(name)` may return undefined; `nameOf(name)` is the name to show; `lineOf(name)` is the
   * text below it, by default the presence; `build(row, name)` connects the buttons of a new row.
   */
  constructor({ listId, templateId, presenceOf, nameOf = (name) => name, lineOf, build }) {
    this.#list = document.getElementById(listId);
    this.#template = document.getElementById(templateId);
    this.#presenceOf = presenceOf;
    this.#nameOf = nameOf;
    this.#lineOf = lineOf ?? ((name) => statusLine(presenceOf(name), Date.now()));
    this.#build = build;
    this.#ticker = setInterval(() => this.redrawAll(), REDRAW_MS);
  }

  get(name) {
    return this.#rows.get(name);
  }

  /** Shows these people, in this order. */
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
    drawAvatar(row.querySelector('.avatar'), name, this.#nameOf(name));
    setText(row.querySelector('.person-name'), this.#nameOf(name));
    setText(row.querySelector('.person-status'), this.#lineOf(name));
  }

  redrawAll() {
    for (const name of this.#rows.keys()) this.redraw(name);
  }

  drawUnread(name, unread) {
    const badge = this.#rows.get(name)?.querySelector('.unread');
    if (badge === undefined) return;
    badge.hidden = unread === 0;
    badge.replaceChildren(unread > 99 ? '99+' : String(unread), hidden(' unread'));
  }

  /** Marks the row whose chat is open; null marks none. */
  mark(name) {
    for (const [other, row] of this.#rows)
      row.querySelector('[data-action=open]').setAttribute('aria-current', String(other === name));
  }

  /** Focuses the row's first control; returns false if there is no such row. */
  focus(name = this.#rows.keys().next().value) {
    const row = this.#rows.get(name);
    row?.querySelector('button').focus();
    return row !== undefined;
  }

  dispose() {
    clearInterval(this.#ticker);
    this.#list.replaceChildren();
  }

  #add(name) {
    const row = this.#template.content.firstElementChild.cloneNode(true);
    row.dataset.user = name;
    this.#rows.set(name, row);
    this.#build(row, name);
    this.redraw(name);
    return row;
  }
}

function setText(element, text) {
  if (element !== null && element.textContent !== text) element.textContent = text;
}

function hidden(text) {
  const element = document.createElement('span');
  element.className = 'visually-hidden';
  element.textContent = text;
  return element;
}
