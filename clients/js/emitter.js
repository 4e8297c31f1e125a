/**
 * A list of listeners per event type.
 *
 * Smaller than EventTarget, with plain payloads. As with EventTarget, a listener that throws stops
 * neither the other listeners nor the client: its error becomes an uncaught error.
 */
export class Emitter {
  #listeners = new Map();

  /** Returns a function that removes the listener. */
  on(type, listener) {
    const listeners = this.#listeners.get(type) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(type, listeners);
    return () => this.off(type, listener);
  }

  once(type, listener) {
    const off = this.on(type, (payload) => {
      off();
      listener(payload);
    });
    return off;
  }

  off(type, listener) {
    this.#listeners.get(type)?.delete(listener);
  }

  emit(type, payload) {
    for (const listener of [...(this.#listeners.get(type) ?? [])]) {
      try {
        listener(payload);
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }
}
