/**
 * The names used in this browser, so that two tabs find each other without typing a name.
 *
 * localStorage holds the names, latest first. A tab that joins announces its name on a
 * BroadcastChannel, and the other tabs subscribe to its presence.
 */
const NAMES_KEY = 'rollcall.names';
const PRIVACY_KEY = 'rollcall.privacy-chosen';
const CHANNEL = 'rollcall';
const NAMES_MAX = 12;
const SUGGESTED = ['alice', 'bob', 'carol', 'dave', 'erin', 'frank'];

export class Names {
  #channel = new BroadcastChannel(CHANNEL);

  /** `onJoined(name)` is called for every tab that joins after this one. */
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

  /** Whether this user has changed the privacy settings in this browser. */
  hasChosenPrivacy(name) {
    return this.#read(PRIVACY_KEY).includes(name);
  }

  choosePrivacy(name) {
    const others = this.#read(PRIVACY_KEY).filter((known) => known !== name);
    this.#write(PRIVACY_KEY, [name, ...others].slice(0, NAMES_MAX));
  }

  /** Names to offer as buttons. */
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

  #write(key, names) {
    try {
      localStorage.setItem(key, JSON.stringify(names));
    } catch {
      /* Without storage the page works; it only forgets the names. */
    }
  }
}
