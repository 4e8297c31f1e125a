/**
 * The main screen: the models (contacts, chats, the call) and the panels that show them.
 *
 * A panel is a class that owns one part of the page. Panels do not use each other; this class
 * passes events from one to another.
 */
import { Rollcall } from '/client/rollcall.js';
import { Backend } from './backend.js';
import { CallBar } from './call_bar.js';
import { Calls } from './calls.js';
import { ChatPanel } from './chat_panel.js';
import { Chats } from './chats.js';
import { ConnectionPill } from './connection.js';
import { Friends } from './friends.js';
import { Journal } from './journal.js';
import { People } from './people.js';
import { Privacy } from './privacy.js';
import { Requests } from './requests.js';
import { Roster, WATCHED_MAX } from './roster.js';
import { You } from './you.js';

const byId = (id) => document.getElementById(id);

export class MainScreen {
  #name;
  #names;
  #events;
  #client;
  #backend;
  #roster;
  #chats;
  #calls;
  #journal;
  #you;
  #people;
  #friends;
  #requests;
  #privacy;
  #chatPanel;
  #callBar;
  #pill;
  #privacyShown = false;

  /**
   * `onLeave()`: the user clicked Leave. `onEnded(error)`: the client has stopped. `onTitle(note)`
   * and `onChat(name)`: the title and the URL change.
   */
  constructor({ name, names, ...events }) {
    this.#name = name;
    this.#names = names;
    this.#events = events;
    this.#backend = new Backend(name);
    this.#client = new Rollcall({ getToken: () => this.#signIn() });
    this.#buildModels();
    this.#buildPanels();
    this.#client.on('state', (change) => this.#onStateChanged(change));
    this.#client.on('presence', () => this.#offerSecondTab());
    byId('ask-form').onsubmit = (event) => this.#submitAsk(event);
    this.#onRosterChanged();
  }

  async enter({ watch = [], chat = null }) {
    const known = [...watch, ...this.#names.known].filter((name) => name !== this.#name);
    const watched = [...new Set(known)].slice(0, WATCHED_MAX);
    if (chat !== null) this.#openChat(chat);
    await this.#attempt(async () => {
      const subscribed = Promise.all([
        this.#client.subscribePresence([this.#name]),
        this.#roster.watch(watched),
      ]);
      await this.#client.connect();
      this.#names.announce(this.#name);
      await subscribed;
    });
  }

  /** A user has joined in another tab. */
  watch(name) {
    this.#roster.watch([name]).catch(() => {}); // the list is full; the user can still be added by name
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
      this.#chatPanel,
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
      onChange: () => this.#onRosterChanged(),
      onFriendRemoved: (name) => this.#onFriendRemoved(name),
    });
    this.#chats = new Chats({ client, backend, me, onChange: (name) => this.#onChatChanged(name) });
    this.#calls = new Calls({
      client,
      me,
      onChange: (call) => this.#onCallChanged(call),
      onRemote: (stream) => this.#callBar.play(stream),
    });
  }

  #buildPanels() {
    const [client, roster, chats, backend] = [
      this.#client,
      this.#roster,
      this.#chats,
      this.#backend,
    ];
    const attempt = (action) => (name) => this.#attempt(() => action(name));
    this.#pill = new ConnectionPill(client);
    this.#you = new You({ client, name: this.#name, onLeave: this.#events.onLeave });
    this.#privacy = new Privacy({
      backend,
      roster,
      onUnblock: attempt((name) => roster.unblock(name)),
      onChosen: () => this.#names.choosePrivacy(this.#name),
      onProblem: (error) => this.#showProblem(error.message),
    });
    this.#requests = new Requests({
      client,
      roster,
      onAccept: attempt((name) => roster.accept(name)),
      onDecline: attempt((name) => roster.decline(name)),
    });
    this.#friends = new Friends({
      client,
      roster,
      chats,
      onOpen: (name) => this.#openChat(name),
      onCall: (name) => this.#calls.ring(name),
      onRemove: attempt((name) => this.#forgetAfter(name, roster.remove(name))),
      onBlock: attempt((name) => this.#forgetAfter(name, roster.block(name))),
    });
    this.#people = new People({
      client,
      roster,
      onAsk: attempt((name) => roster.request(name)),
      onForget: attempt((name) => this.#forgetAfter(name, roster.forget(name))),
    });
    this.#chatPanel = new ChatPanel({
      client,
      chats,
      me: this.#name,
      onCall: (name) => this.#calls.ring(name),
      onClosed: () => this.#onChatSelected(),
    });
    this.#callBar = new CallBar({
      onAccept: () => this.#calls.accept(),
      onHangUp: () => this.#calls.hangUp(),
      onMute: (muted) => this.#calls.mute(muted),
    });
  }

  // --- Events -------------------------------------------------------------------------------------

  /** Promises a token. The first time it also applies the page's default privacy settings. */
  async #signIn() {
    const token = await this.#backend.signIn();
    if (this.#privacyShown) return token;
    const chosen = this.#names.hasChosenPrivacy(this.#name);
    const backend = this.#backend;
    this.#privacy.show(await (chosen ? backend.settings() : backend.showToEveryone()));
    this.#privacyShown = true;
    return token;
  }

  #onStateChanged({ state, final, error }) {
    byId('main-screen').classList.toggle('stale', state !== 'READY');
    if (final) this.#events.onEnded(error);
    if (state !== 'READY') return;
    this.#attempt(async () => {
      await this.#roster.load();
      await this.#chats.load(this.#roster.friends);
    });
  }

  #onRosterChanged() {
    this.#requests.draw();
    this.#friends.draw();
    this.#friends.mark(this.#chatPanel.name);
    this.#people.draw();
    this.#privacy.draw();
    this.#offerSecondTab();
  }

  #onFriendRemoved(name) {
    if (this.#chatPanel.name === name) this.#chatPanel.close();
  }

  #onChatChanged(name) {
    this.#chatPanel.onChanged(name);
    this.#friends.drawUnread(name);
  }

  #onCallChanged(call) {
    this.#callBar.draw(call);
    this.#events.onTitle(call?.state === 'incoming' ? `${call.peer} is calling · ` : '');
    if (call?.missed) this.#journal.add(call.peer, 'called you, unanswered');
  }

  #openChat(name) {
    this.#chatPanel.open(name);
    this.#onChatSelected();
  }

  #onChatSelected() {
    this.#friends.mark(this.#chatPanel.name);
    this.#events.onChat(this.#chatPanel.name);
  }

  /** A user who was removed is not suggested again. */
  async #forgetAfter(name, removal) {
    await removal;
    this.#names.forget(name);
  }

  #submitAsk(event) {
    event.preventDefault();
    const input = byId('ask-name');
    const name = input.value.trim();
    if (name === '') return;
    input.value = '';
    this.#attempt(async () => {
      await this.#roster.request(name);
      this.#names.remember(name);
    });
  }

  /** Runs the action, and shows its error to the user. */
  async #attempt(action) {
    this.#showProblem(null);
    try {
      await action();
    } catch (error) {
      if (error.code !== 'CLOSED') this.#showProblem(error.message);
    }
  }

  #showProblem(problem) {
    byId('people-problem').hidden = problem === null;
    byId('people-problem').textContent = problem ?? '';
  }

  /** Offers the name of a user who is not online, else a new name, else any name. */
  #offerSecondTab() {
    const { others, friends, incoming } = this.#roster;
    const taken = [this.#name, ...others, ...friends, ...incoming];
    const [other = taken.at(-1)] = [...this.#people.absent, ...this.#names.suggest(1, taken)];
    this.#you.offerSecondTab(other);
  }
}
