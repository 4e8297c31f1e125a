/**
 * The names used in this browser, so that two tabs find each other without anybody typing.
 *
 * Names are kept, latest first, in localStorage; a tab that joins says so on a BroadcastChannel and
 * the others begin to watch it.
 */
const STORAGE_KEY = 'rollcall.names';
const CHANNEL = 'rollcall';
const NAMES_MAX = 12;
const SUGGESTED = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank'];

export class Names {
  #channel = new BroadcastChannel(CHANNEL);

  /** `onJoined(name)` hears of every tab that joins after this one. */
  constructor(onJoined) {
    this.#channel.onmessage = ({ data }) => {
      if (typeof data?.joined === 'string') onJoined(data.joined);
    };
  }

  get known() {
    try {
      const names = JSON.parse(localStorage.getItem(STORAGE_KEY));
      return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
    } catch {
      return [];
    }
  }

  remember(name) {
    this.#store([name, ...this.known.filter((known) => known !== name)].slice(0, NAMES_MAX));
  }

  forget(name) {
    this.#store(this.known.filter((known) => known !== name));
  }

  announce(name) {
    this.remember(name);
    this.#channel.postMessage({ joined: name });
  }

  /** Names for one click. */
  suggest(count, except = []) {
    return SUGGESTED.filter((name) => !except.includes(name)).slice(0, count);
  }

  /** A browser without storage still has this page. */
  #store(names) {
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(names));
    } catch {
      /* nothing to be done, nothing lost */
    }
  }
}
