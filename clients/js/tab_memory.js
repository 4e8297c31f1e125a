/**
 * What a tab keeps while it reloads: its device id and its call, so that it returns to the call.
 *
 * A copy of a tab gets a copy of its storage too; only a reload may use what it finds there.
 */
import { uniqueId } from './util.js';

const DEVICE_KEY = 'rollcall.device';
const CALL_KEY = 'rollcall.call';

const isReload = () => performance.getEntriesByType('navigation')[0]?.type === 'reload';

export class TabMemory {
  #kept = isReload() ? { device: read(DEVICE_KEY), call: read(CALL_KEY) } : {};

  constructor() {
    this.#kept.device ??= uniqueId();
    write(DEVICE_KEY, this.#kept.device);
  }

  /** For `new Rollcall({ deviceId })`. */
  get deviceId() {
    return this.#kept.device;
  }

  /** The call that this user had before the reload: `{callId, startedMs, muted}`, or undefined. */
  callOf(user) {
    const { call } = this.#kept;
    return call?.user === user ? call : undefined;
  }

  keepCall(user, { callId, startedMs, muted }) {
    write(CALL_KEY, { user, callId, startedMs, muted });
  }

  forgetCall() {
    this.#kept.call = undefined;
    write(CALL_KEY, null);
  }
}

function read(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? undefined;
  } catch {
    return undefined;
  }
}

function write(key, value) {
  try {
    sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    /* Without storage a reload ends the call. */
  }
}
