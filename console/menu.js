/**
 * A menu behind a button, as WAI-ARIA describes it: arrow keys move; Escape or a click elsewhere
 * closes it; the focus returns to the button.
 */
export class Menu {
  #root;
  #button;
  #list;

  /** `root` holds a button and a `role=menu` with `data-action` items; `actions` maps them. */
  constructor(root, label, actions) {
    this.#root = root;
    this.#button = root.querySelector('[aria-haspopup]');
    this.#list = root.querySelector('[role=menu]');
    this.#button.setAttribute('aria-label', label);
    this.#button.addEventListener('click', () => this.#toggle(this.#list.hidden));
    root.addEventListener('keydown', (event) => this.#onKey(event));
    root.addEventListener('focusout', ({ relatedTarget }) => {
      if (!root.contains(relatedTarget)) this.#toggle(false);
    });
    for (const item of this.#items) {
      item.addEventListener('click', () => {
        this.#close();
        actions[item.dataset.action]();
      });
    }
  }

  get #items() {
    return [...this.#list.querySelectorAll('[role=menuitem]')];
  }

  #toggle(open) {
    this.#list.hidden = !open;
    this.#button.setAttribute('aria-expanded', String(open));
    this.#root.classList.toggle('open', open);
    if (open) this.#items[0].focus();
  }

  #close() {
    this.#button.focus();
    this.#toggle(false);
  }

  #onKey(event) {
    if (this.#list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Escape') this.#close();
    else if (step === undefined) return;
    else this.#move(step);
    event.preventDefault();
  }

  #move(step) {
    const items = this.#items;
    const position = items.indexOf(document.activeElement) + step;
    items.at(position % items.length).focus();
  }
}
