/**
 * The main screen: the models (contacts, chats, the call) and the panels that show them.
 *
 * A panel is a class that owns one part of the page. Panels do not use each other; this class
 * passes events from one to another.
 */
import { Calls } from '/client/call.js';
import { Rollcall, RollcallApi } from '/client/rollcall.js';
import { Alerts } from './alerts.js';
import { CallBar } from './call_bar.js';
import { drawCallButton } from './call_button.js';
import { ChatPanel } from './chat_panel.js';
import { Chats } from './chats.js';
import { ConnectionPill } from './connection.js';
import { ContactActions } from './contact_actions.js';
import { Friends } from './friends.js';
import { GroupForm } from './group_form.js';
import { GroupMembers } from './group_members.js';
import { Groups } from './groups.js';
import { Journal } from './journal.js';
import { OtherChats } from './other_chats.js';
import { People } from './people.js';
import { Privacy } from './privacy.js';
import { Profiles } from './profiles.js';
import { Requests } from './requests.js';
import { Roster, WATCHED_MAX } from './roster.js';
import { showToEveryone, signIn } from './sign_in.js';
import { You } from './you.js';

const byId = (id) => document.getElementById(id);

export class MainScreen {
  #name;
  #names;
  #memory;
  #events;
  #client;
  #roster;
  #chats;
  #calls;
  #journal;
  #you;
  #people;
  #friends;
  #groups;
  #otherChats;
  #groupForm;
  #groupMembers;
  #requests;
  #privacy;
  #chatPanel;
  #callBar;
  #pill;
  #alerts;
  #contactActions;
  #profiles = new Profiles();
  #nameOf = (user) => this.#profiles.nameOf(user);
  #arrival = {};

  /**
   * `onLeave()`: the user clicked Leave. `onEnded(error)`: the client has stopped. `onTitle(note)`
   * and `onChat(chat)`: the title and the URL change.
   */
  constructor({ name, names, memory, ...events }) {
    this.#name = name;
    this.#names = names;
    this.#memory = memory;
    this.#events = events;
    this.#client = new Rollcall({ getToken: () => this.#signIn(), deviceId: memory.deviceId });
    this.#buildModels();
    this.#buildPeople();
    this.#buildChat();
    this.#client.on('state', (change) => this.#onStateChanged(change));
    this.#client.on('presence', () => this.#offerSecondTab());
    this.#onRosterChanged();
  }

  async enter({ watch = [], chat = null, group = null }) {
    this.#arrival = { chat, group };
    const known = [...watch, ...this.#names.known].filter((name) => name !== this.#name);
    const watched = [...new Set(known)].slice(0, WATCHED_MAX);
    if (chat !== null) this.#openChat(this.#chats.with(chat));
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

  leave() {
    this.#calls.dispose();
    this.#client.close();
    for (const panel of [
      this.#people,
      this.#friends,
      this.#groups,
      this.#otherChats,
      this.#groupForm,
      this.#groupMembers,
      this.#requests,
      this.#privacy,
      this.#chatPanel,
      this.#callBar,
      this.#pill,
      this.#alerts,
      this.#contactActions,
    ])
      panel.dispose();
  }

  // --- Construction -------------------------------------------------------------------------------

  #buildModels() {
    const [client, me] = [this.#client, this.#name];
    this.#journal = new Journal({ client, me });
    this.#roster = new Roster({
      client,
      me,
      profiles: this.#profiles,
      onChange: () => this.#onRosterChanged(),
      onFriendRemoved: (name) => this.#onFriendRemoved(name),
    });
    this.#chats = new Chats({
      client,
      me,
      profiles: this.#profiles,
      onChange: (chat) => this.#onChatChanged(chat),
      onMessage: (chat, message) => this.#alerts.showMessage(chat, message),
      onClosed: (chat) => this.#onGroupClosed(chat),
    });
    this.#calls = new Calls(client, { memory: this.#memory });
    this.#calls.subscribe(() => this.#onCallChanged(this.#calls.current));
    this.#alerts = new Alerts({
      nameOf: this.#nameOf,
      onTitle: this.#events.onTitle,
      onOpen: (chat) => this.#openChat(chat),
    });
  }

  #buildPeople() {
    const [client, roster, chats] = [this.#client, this.#roster, this.#chats];
    const attempt = (action) => (name) => this.#attempt(() => action(name));
    const contacts = new ContactActions({
      roster,
      names: this.#names,
      attempt: (action) => this.#attempt(action),
    });
    this.#contactActions = contacts;
    this.#pill = new ConnectionPill(client);
    this.#you = new You({ client, name: this.#name, onLeave: this.#events.onLeave });
    this.#privacy = new Privacy({
      api: client.api,
      roster,
      onUnblock: attempt((name) => roster.unblock(name)),
      onChosen: () => this.#names.choosePrivacy(this.#name),
      onShown: ({ display_name: shown }) => this.#you.showName(shown ?? this.#name),
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
      nameOf: this.#nameOf,
      onOpen: (name) => this.#openChat(chats.with(name)),
      onCall: (name) => this.#call(name),
      onRemove: attempt((name) => contacts.remove(name)),
      onBlock: attempt((name) => contacts.block(name)),
    });
    this.#people = new People({
      client,
      roster,
      onAsk: attempt((name) => roster.request(name)),
      onForget: attempt((name) => contacts.forget(name)),
    });
  }

  #buildChat() {
    const [client, chats, me] = [this.#client, this.#chats, this.#name];
    this.#groups = new Groups({
      chats,
      me,
      nameOf: this.#nameOf,
      onOpen: (chat) => this.#openChat(chat),
      onNew: () => this.#groupForm.open(this.#roster.friends),
    });
    this.#otherChats = new OtherChats({
      client,
      chats,
      roster: this.#roster,
      nameOf: this.#nameOf,
      onOpen: (name) => this.#openChat(chats.with(name)),
    });
    this.#groupForm = new GroupForm({
      onCreate: async (name, members) => this.#openChat(await chats.createGroup(name, members)),
    });
    this.#groupMembers = new GroupMembers({
      client,
      chats,
      me,
      nameOf: this.#nameOf,
      onProblem: (error) => this.#showProblem(error.message),
    });
    this.#chatPanel = new ChatPanel({
      client,
      chats,
      me,
      nameOf: this.#nameOf,
      onCall: (name) => this.#call(name),
      onMembers: (chat) => this.#groupMembers.open(chat),
      onClosed: (chat) => this.#onChatClosed(chat),
    });
    this.#callBar = new CallBar({
      nameOf: this.#nameOf,
      onAccept: () => this.#calls.accept().catch(() => {}), // the bar shows why
      onHangUp: () => this.#calls.hangUp(),
      onMute: (muted) => this.#calls.mute(muted),
    });
  }

  // --- Events -------------------------------------------------------------------------------------

  /** Promises a token. The first time it also applies the page's default privacy settings. */
  async #signIn() {
    const token = await signIn(this.#name);
    if (this.#privacy.shown) return token;
    const api = new RollcallApi({ token });
    const chosen = this.#names.hasChosenPrivacy(this.#name);
    this.#privacy.show(await (chosen ? api.me() : showToEveryone(api)));
    return token;
  }

  #onStateChanged({ state, final, error }) {
    byId('main-screen').classList.toggle('stale', state !== 'READY');
    if (final) this.#events.onEnded(error);
    if (state !== 'READY') return;
    this.#attempt(async () => {
      await Promise.all([this.#roster.load(), this.#chats.load()]);
      this.#arrive();
    });
  }

  /** Once, after the lists have come: opens the group of the URL, and focuses what comes next. */
  #arrive() {
    const { group = null } = this.#arrival;
    const arrives = this.#arrival.chat !== undefined;
    this.#arrival = {};
    const chat = group === null ? undefined : this.#chats.group(group);
    if (chat !== undefined) this.#openChat(chat);
    const isIdle = document.activeElement === document.body; // do not take the focus from the user
    if (!arrives || !isIdle || this.#chatPanel.chat !== null) return;
    if (!this.#friends.focus()) byId('second-tab').focus();
  }

  #onRosterChanged() {
    this.#requests.draw();
    this.#friends.draw(this.#openName, this.#calls.current);
    this.#otherChats.draw(this.#openName);
    this.#drawCallButtons();
    this.#people.draw();
    this.#privacy.draw();
    this.#offerSecondTab();
  }

  #onFriendRemoved(name) {
    if (this.#chatPanel.chat?.peer === name) this.#chatPanel.close();
  }

  #onChatChanged(chat) {
    this.#chatPanel.onChanged(chat);
    this.#groupMembers.onChanged(chat);
    this.#drawChatLists();
    if (!chat.isGroup) this.#friends.drawUnread(chat.peer);
    this.#alerts.showUnread(this.#chats.unread);
  }

  /** The other user of the open chat, or null. */
  get #openName() {
    return this.#chatPanel.chat?.peer ?? null;
  }

  #drawChatLists() {
    const { chat } = this.#chatPanel;
    this.#groups.draw(chat?.isGroup ? chat.chatId : null);
    this.#otherChats.draw(this.#openName);
  }

  /** The user has left the group, or was removed. */
  #onGroupClosed(chat) {
    if (this.#chatPanel.chat === chat) this.#chatPanel.close();
    this.#drawChatLists();
    this.#alerts.showUnread(this.#chats.unread);
  }

  #onCallChanged(call) {
    this.#callBar.draw(call);
    this.#alerts.showCall(call);
    this.#drawCallButtons();
    if (call?.missed) this.#journal.add(call.peer, 'called you, unanswered');
  }

  #drawCallButtons() {
    const call = this.#calls.current;
    this.#friends.drawCall(call);
    const peer = this.#openName;
    byId('chat-call').hidden = !this.#roster.isFriend(peer); // only contacts can call each other
    if (peer !== null) drawCallButton(byId('chat-call'), peer, call);
  }

  #openChat(chat) {
    this.#chatPanel.open(chat);
    this.#onChatSelected();
  }

  /** The focus returns to where the chat was opened. */
  #onChatClosed(chat) {
    this.#onChatSelected();
    if (chat.isGroup) this.#groups.focus(chat.chatId);
    else if (!this.#friends.focus(chat.peer)) this.#otherChats.focus(chat.peer);
  }

  #onChatSelected() {
    const { chat } = this.#chatPanel;
    this.#friends.mark(this.#openName);
    this.#drawChatLists();
    this.#drawCallButtons();
    this.#events.onChat(chat);
  }

  /** The call bar shows why a call is refused. */
  #call(name) {
    this.#calls.place(name).catch(() => {});
  }

  // --- Actions ------------------------------------------------------------------------------------

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
    const { others, friends, incoming, blocked } = this.#roster;
    const taken = [this.#name, ...others, ...friends, ...incoming, ...blocked];
    const [other = taken.at(-1)] = [...this.#people.absent, ...this.#names.suggest(1, taken)];
    this.#you.offerSecondTab(other);
  }
}
