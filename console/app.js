/**
 * The page at `/`: pick a name, watch people come and go.
 *
 * Two screens: joining, and the room. The room is made of panels, each a class that gets the client
 * and owns one card; a new panel (contacts, a chat, calls) is one more of them in Room.
 *
 * Address: `?name=bob` joins at once, `&watch=alice,carol` watches as well.
 */
import { Rollcall } from '/client/rollcall.js';
import { fetchToken, showMyself } from './backend.js';
import { ConnectionPill } from './connection.js';
import { Journal } from './journal.js';
import { Names } from './names.js';
import { People, PEOPLE_MAX } from './people.js';
import { You } from './you.js';

const SUGGESTIONS = 4;

const byId = (id) => document.getElementById(id);

class Room {
  #client;
  #names;
  #panels;
  #people;
  #you;
  #name;

  constructor({ name, names, onLeave, onEnded }) {
    this.#name = name;
    this.#names = names;
    const client = new Rollcall({ getToken: () => tokenFor(name) });
    const journal = new Journal();
    journal.clear();
    this.#client = client;
    this.#you = new You({ client, name, onLeave });
    this.#people = new People({ client, journal, onForget: (other) => this.#forget(other) });
    this.#panels = [this.#people, new ConnectionPill(client)];
    client.on('presence', () => this.#offerSecondTab());
    client.on('state', ({ state, final, error }) => {
      byId('room').classList.toggle('stale', state !== 'READY');
      if (final) onEnded(error);
    });
    this.#offerSecondTab();
  }

  async enter(alsoWatch) {
    const met = [...alsoWatch, ...this.#names.known].filter((name) => name !== this.#name);
    const watched = [...new Set(met)].slice(0, PEOPLE_MAX);
    const subscribed = Promise.all([
      this.#client.subscribePresence([this.#name]),
      this.#people.watch(watched),
    ]);
    await this.#client.connect();
    this.#names.announce(this.#name);
    this.#offerSecondTab();
    await subscribed;
  }

  /** `name` typed by the user, or heard from another tab. */
  async watch(name) {
    if (name === this.#name) throw new Error('That is you.');
    await this.#people.watch([name]);
    this.#names.remember(name);
    this.#offerSecondTab();
  }

  leave() {
    this.#client.close();
    for (const panel of this.#panels) panel.dispose();
  }

  #forget(name) {
    this.#names.forget(name);
    this.#offerSecondTab();
  }

  /** Somebody who is being watched but not here, else a new name, else just any. */
  #offerSecondTab() {
    const taken = [this.#name, ...this.#people.names];
    const [other = taken.at(-1)] = [...this.#people.absent, ...this.#names.suggest(1, taken)];
    this.#you.offerSecondTab(other);
  }
}

/** A token, for somebody whom everybody may see. */
async function tokenFor(name) {
  const token = await fetchToken(name);
  await showMyself(token);
  return token;
}

class Page {
  #room = null;
  #names = new Names((name) => this.#room?.watch(name).catch(() => {}));

  constructor() {
    byId('join-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#join(byId('join-name').value.trim(), []);
    });
    byId('watch-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.#watch(byId('watch-name'));
    });
    this.#showJoin();
    const address = new URLSearchParams(location.search);
    const name = address.get('name')?.trim();
    const watch = (address.get('watch') ?? '').split(',').filter(Boolean);
    if (name) this.#join(name, watch);
  }

  async #join(name, watch) {
    if (name === '' || this.#room !== null) return;
    showProblem('join-problem', null);
    this.#room = new Room({
      name,
      names: this.#names,
      onLeave: () => this.#leave(),
      onEnded: (error) => this.#ended(error),
    });
    setAddress({ name });
    byId('join').hidden = true;
    byId('room').hidden = false;
    document.title = `${name} · Rollcall`;
    try {
      await this.#room.enter(watch);
    } catch (error) {
      if (error.code !== 'CLOSED') showProblem('watch-problem', error.message);
    }
  }

  #leave() {
    const room = this.#room;
    this.#room = null;
    room?.leave();
    setAddress({});
    this.#showJoin();
    byId('join-name').focus();
  }

  /** The server does not want this client back, or never wanted it. */
  #ended(error) {
    if (this.#room === null) return;
    this.#leave();
    showProblem('join-problem', error.message);
  }

  async #watch(input) {
    const name = input.value.trim();
    if (name === '') return;
    showProblem('watch-problem', null);
    try {
      input.value = '';
      await this.#room.watch(name);
    } catch (error) {
      showProblem('watch-problem', error.message);
    }
  }

  #showJoin() {
    byId('join').hidden = false;
    byId('room').hidden = true;
    document.title = 'Rollcall';
    const chips = this.#names.suggest(SUGGESTIONS).map((name) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = name;
      button.addEventListener('click', () => this.#join(name, []));
      const item = document.createElement('li');
      item.append(button);
      return item;
    });
    byId('suggestions').replaceChildren(...chips);
  }
}

function showProblem(id, text) {
  byId(id).hidden = text === null;
  byId(id).textContent = text ?? '';
}

/** A reload joins again under the same name; after leaving it does not. */
function setAddress(parameters) {
  const query = new URLSearchParams(parameters).toString();
  history.replaceState(null, '', query === '' ? '/' : `/?${query}`);
}

new Page();
