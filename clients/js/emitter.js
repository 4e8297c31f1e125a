/**
 * A list of listeners per event type.
 *
 * Smaller than EventTarget and with plain payloads. Like EventTarget, one listener that throws
 * neither stops the others nor the client: its error surfaces as an uncaught one of its own.
 */
export class Emitter {
  #listeners = new Map();

  /** Returns the function that takes the listener off again. */
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
