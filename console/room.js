/**
 * The room: models (who is who, what was written, the call) and the panels that show them.
 *
 * A panel is a class that owns one part of the page. Panels do not know each other; what one does
 * that concerns another goes through here.
 */
import { Rollcall } from '/client/rollcall.js';
import { Backend } from './backend.js';
import { CallBar } from './call_bar.js';
import { Calls } from './calls.js';
import { Chat } from './chat.js';
import { ConnectionPill } from './connection.js';
import { Friends } from './friends.js';
import { Journal } from './journal.js';
import { People } from './people.js';
import { Privacy } from './privacy.js';
import { Requests } from './requests.js';
import { MET_MAX, Roster } from './roster.js';
import { Talks } from './talks.js';
import { You } from './you.js';

const byId = (id) => document.getElementById(id);

export class Room {
  #name;
  #names;
  #events;
  #client;
  #backend;
  #roster;
  #talks;
  #calls;
  #journal;
  #you;
  #people;
  #friends;
  #requests;
  #privacy;
  #chat;
  #callBar;
  #pill;
  #shown = false;

  /**
   * `onLeave()`: the user wants to. `onEnded(error)`: the connection is over for good. `onTitle(note)`
   * and `onChat(name)`: what title and address should say.
   */
  constructor({ name, names, ...events }) {
    this.#name = name;
    this.#names = names;
    this.#events = events;
    this.#backend = new Backend(name);
    this.#client = new Rollcall({ getToken: () => this.#signIn() });
    this.#buildModels();
    this.#buildPanels();
    this.#client.on('state', (change) => this.#connectionChanged(change));
    this.#client.on('presence', () => this.#offerSecondTab());
    byId('ask-form').onsubmit = (event) => this.#submitAsk(event);
    this.#rosterChanged();
  }

  async enter({ watch = [], chat = null }) {
    const met = [...watch, ...this.#names.known].filter((name) => name !== this.#name);
    const watched = [...new Set(met)].slice(0, MET_MAX);
    if (chat !== null) this.#openChat(chat);
    await this.#attempt(async () => {
      const subscribed = Promise.all([
        this.#client.subscribePresence([this.#name]),
        this.#roster.meet(watched),
      ]);
      await this.#client.connect();
      this.#names.announce(this.#name);
      await subscribed;
    });
  }

  /** Somebody joined in another tab. */
  meet(name) {
    this.#roster.meet([name]).catch(() => {}); // the list is full; they can still be asked by name
  }

  hangUp() {
    this.#calls.hangUp();
  }

  leave() {
    this.#calls.dispose();
    this.#client.close();
    for (const panel of [
      this.#people,
      this.#friends,
      this.#requests,
      this.#privacy,
      this.#chat,
      this.#callBar,
      this.#pill,
    ])
      panel.dispose();
  }

  // --- Construction -------------------------------------------------------------------------------

  #buildModels() {
    const [client, backend, me] = [this.#client, this.#backend, this.#name];
    this.#journal = new Journal({ client, me });
    this.#roster = new Roster({
      client,
      backend,
      me,
      onChange: () => this.#rosterChanged(),
      onGone: (name) => this.#friendGone(name),
    });
    this.#talks = new Talks({ client, backend, me, onChange: (name) => this.#talkChanged(name) });
    this.#calls = new Calls({
      client,
      me,
      onChange: (call) => this.#callChanged(call),
      onRemote: (stream) => this.#callBar.sound(stream),
    });
  }

  #buildPanels() {
    const [client, roster, talks, backend] = [
      this.#client,
      this.#roster,
      this.#talks,
      this.#backend,
    ];
    const does = (action) => (name) => this.#attempt(() => action(name));
    this.#pill = new ConnectionPill(client);
    this.#you = new You({ client, name: this.#name, onLeave: this.#events.onLeave });
    this.#privacy = new Privacy({
      backend,
      roster,
      onUnblock: does((name) => roster.unblock(name)),
      onChosen: () => this.#names.choosePrivacy(this.#name),
      onProblem: (error) => this.#say(error.message),
    });
    this.#requests = new Requests({
      client,
      roster,
      onAccept: does((name) => roster.accept(name)),
      onDecline: does((name) => roster.decline(name)),
    });
    this.#friends = new Friends({
      client,
      roster,
      talks,
      onOpen: (name) => this.#openChat(name),
      onCall: (name) => this.#calls.ring(name),
      onRemove: does((name) => this.#part(name, roster.remove(name))),
      onBlock: does((name) => this.#part(name, roster.block(name))),
    });
    this.#people = new People({
      client,
      roster,
      onAsk: does((name) => roster.ask(name)),
      onForget: does((name) => this.#part(name, roster.forget(name))),
    });
    this.#chat = new Chat({
      client,
      talks,
      me: this.#name,
      onCall: (name) => this.#calls.ring(name),
      onClosed: () => this.#chatChanged(),
    });
    this.#callBar = new CallBar({
      onAccept: () => this.#calls.accept(),
      onHangUp: () => this.#calls.hangUp(),
      onMute: (muted) => this.#calls.mute(muted),
    });
  }

  // --- What happens -------------------------------------------------------------------------------

  /** A token, for somebody whom everybody may see unless they chose otherwise. */
  async #signIn() {
    const token = await this.#backend.signIn();
    if (this.#shown) return token;
    const chosen = this.#names.hasChosenPrivacy(this.#name);
    const backend = this.#backend;
    this.#privacy.show(await (chosen ? backend.settings() : backend.showMyself()));
    this.#shown = true;
    return token;
  }

  #connectionChanged({ state, final, error }) {
    byId('room').classList.toggle('stale', state !== 'READY');
    if (final) this.#events.onEnded(error);
    if (state !== 'READY') return;
    this.#attempt(async () => {
      await this.#roster.load();
      await this.#talks.load(this.#roster.friends);
    });
  }

  #rosterChanged() {
    this.#requests.draw();
    this.#friends.draw();
    this.#friends.mark(this.#chat.name);
    this.#people.draw();
    this.#privacy.draw();
    this.#offerSecondTab();
  }

  #friendGone(name) {
    if (this.#chat.name === name) this.#chat.close();
  }

  #talkChanged(name) {
    this.#chat.changed(name);
    this.#friends.drawUnread(name);
  }

  #callChanged(call) {
    this.#callBar.draw(call);
    this.#events.onTitle(call?.state === 'incoming' ? `${call.peer} is calling · ` : '');
    if (call?.missed) this.#journal.add(call.peer, 'called you, unanswered');
  }

  #openChat(name) {
    this.#chat.open(name);
    this.#chatChanged();
  }

  #chatChanged() {
    this.#friends.mark(this.#chat.name);
    this.#events.onChat(this.#chat.name);
  }

  /** Whoever was sent away is not suggested again. */
  async #part(name, parted) {
    await parted;
    this.#names.forget(name);
  }

  #submitAsk(event) {
    event.preventDefault();
    const input = byId('ask-name');
    const name = input.value.trim();
    if (name === '') return;
    input.value = '';
    this.#attempt(async () => {
      await this.#roster.ask(name);
      this.#names.remember(name);
    });
  }

  /** Does what the user asked for, and tells them if it could not be done. */
  async #attempt(action) {
    this.#say(null);
    try {
      await action();
    } catch (error) {
      if (error.code !== 'CLOSED') this.#say(error.message);
    }
  }

  #say(problem) {
    byId('people-problem').hidden = problem === null;
    byId('people-problem').textContent = problem ?? '';
  }

  /** Somebody who is being watched but not here, else a new name, else just any. */
  #offerSecondTab() {
    const { others, friends, asking } = this.#roster;
    const taken = [this.#name, ...others, ...friends, ...asking];
    const [other = taken.at(-1)] = [...this.#people.absent, ...this.#names.suggest(1, taken)];
    this.#you.offerSecondTab(other);
  }
}
