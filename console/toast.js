/** A short note at the bottom of the page about what was done, with a button that undoes it. */
const SHOWN_MS = 10000;

const byId = (id) => document.getElementById(id);

export class Toast {
  #timer;

  show(text, onUndo) {
    clearTimeout(this.#timer);
    byId('toast-text').textContent = text;
    byId('toast').hidden = false;
    byId('toast-undo').onclick = () => {
      this.hide();
      onUndo();
    };
    this.#timer = setTimeout(() => this.hide(), SHOWN_MS);
  }

  hide() {
    clearTimeout(this.#timer);
    byId('toast').hidden = true;
  }
}
