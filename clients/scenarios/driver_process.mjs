/**
 * A driver: the program that lets the scenarios use one client library. README.md describes its lines.
 *
 * $SCENARIO_DRIVER is its command line. All scenarios share one process; `client` tells their clients apart.
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class Driver {
  #child;
  #pending = new Map();
  #listeners = new Map();
  #lastId = 0;
  #failed = null;
  #exited;
  hello;

  constructor(command) {
    const [program, ...args] = command.split(' ').filter((word) => word !== '');
    this.#child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdin.on('error', () => {});
    this.#exited = new Promise((resolve) => {
      this.#child.on('exit', (code, signal) => {
        this.#fail(new Error(`the driver ended with ${code ?? signal}`));
        resolve(code ?? signal);
      });
    });
    this.hello = new Promise((resolve, reject) => {
      this.#pending.set('hello', { resolve, reject });
    });
    this.#child.on('error', (error) => this.#fail(error));
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#onLine(JSON.parse(line)));
  }

  /** Promises the result of one operation; rejects with an error that has the library's `code`. */
  call(client, op, args = {}) {
    if (this.#failed) return Promise.reject(this.#failed);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, client, do: op, args })}\n`);
    });
  }

  /** Calls `listener(event, data)` for each event of a client. */
  listen(client, listener) {
    this.#listeners.set(client, listener);
  }

  /** Ends the driver by closing its input; promises its exit status. */
  end() {
    this.#child.stdin.end();
    return this.#exited;
  }

  #onLine({ id, result, error, client, event, data, hello }) {
    if (hello !== undefined) this.#settle('hello', hello);
    else if (event !== undefined) this.#listeners.get(client)?.(event, data);
    else if (error !== undefined) this.#settle(id, Object.assign(new Error(error.message), { code: error.code }), true);
    else this.#settle(id, result ?? null);
  }

  #settle(id, value, failed = false) {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (failed) call?.reject(value);
    else call?.resolve(value);
  }

  #fail(error) {
    this.#failed ??= error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
