/**
 * The names used in this browser, so that two tabs find each other without anybody typing.
 *
 * Names are kept, latest first, in localStorage; a tab that joins says so on a BroadcastChannel and
 * the others begin to watch it.
 */
const NAMES_KEY = 'rollcall.names';
const PRIVACY_KEY = 'rollcall.privacy-chosen';
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
    return this.#read(NAMES_KEY);
  }

  remember(name) {
    const others = this.known.filter((known) => known !== name);
    this.#write(NAMES_KEY, [name, ...others].slice(0, NAMES_MAX));
  }

  forget(name) {
    this.#write(
      NAMES_KEY,
      this.known.filter((known) => known !== name),
    );
  }

  announce(name) {
    this.remember(name);
    this.#channel.postMessage({ joined: name });
  }

  /** Whether somebody chose, in this browser, who may see them. */
  hasChosenPrivacy(name) {
    return this.#read(PRIVACY_KEY).includes(name);
  }

  choosePrivacy(name) {
    const others = this.#read(PRIVACY_KEY).filter((known) => known !== name);
    this.#write(PRIVACY_KEY, [name, ...others].slice(0, NAMES_MAX));
  }

  /** Names for one click. */
  suggest(count, except = []) {
    return SUGGESTED.filter((name) => !except.includes(name)).slice(0, count);
  }

  #read(key) {
    try {
      const names = JSON.parse(localStorage.getItem(key));
      return Array.isArray(names) ? names.filter((name) => typeof name === 'string') : [];
    } catch {
      return [];
    }
  }

  /** A browser without storage still has this page. */
  #write(key, names) {
    try {
      localStorage.setItem(key, JSON.stringify(names));
    } catch {
      /* nothing to be done, nothing lost */
    }
  }
}
