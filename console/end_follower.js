/**
 * Keeps the end of a scrolling list in view while the user is there, whatever changes its size: new
 * messages, the call bar, a smaller window, the keyboard of a phone.
 */
const NEAR_END_PX = 60;

export class EndFollower {
  #box;
  #content;
  #onEnd;
  #atEnd = true;
  #size = '';
  #observer = new ResizeObserver(() => this.#onResized());

  /** `box` scrolls `content`; `onEnd()` is called when the user comes to the end or leaves it. */
  constructor({ box, content, onEnd }) {
    this.#box = box;
    this.#content = content;
    this.#onEnd = onEnd;
    box.onscroll = () => this.#onScroll();
    this.#observer.observe(box);
    this.#observer.observe(content);
  }

  get atEnd() {
    return this.#atEnd;
  }

  toEnd() {
    this.#atEnd = true;
    this.#follow();
  }

  dispose() {
    this.#observer.disconnect();
    this.#box.onscroll = null;
  }

  /** Runs `change`, which adds or removes elements; what the user looks at stays in its place. */
  keep(change) {
    const fromEnd = this.#fromEnd;
    const firstBefore = this.#first;
    change();
    if (this.#atEnd) this.#follow();
    else if (this.#first !== firstBefore)
      this.#box.scrollTop = this.#box.scrollHeight - this.#box.clientHeight - fromEnd;
  }

  get #first() {
    return this.#content.firstElementChild;
  }

  get #fromEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.#box;
    return scrollHeight - scrollTop - clientHeight;
  }

  #follow() {
    if (this.#atEnd) this.#box.scrollTop = this.#box.scrollHeight;
  }

  #onResized() {
    this.#size = this.#measured;
    this.#follow();
    this.#update();
  }

  /** While the size changes, the browser scrolls too; only the user leaves the end. */
  #onScroll() {
    if (this.#measured === this.#size) this.#update();
  }

  #update() {
    const atEnd = this.#fromEnd < NEAR_END_PX;
    if (atEnd === this.#atEnd) return;
    this.#atEnd = atEnd;
    this.#onEnd();
  }

  get #measured() {
    return `${this.#box.clientHeight} of ${this.#box.scrollHeight}`;
  }
}
