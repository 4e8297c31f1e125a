/**
 * What the React hooks show, for all components of a client together.
 *
 * A store begins with its first subscriber and ends a moment after its last one, so that a component that is mounted
 * twice (strict mode), or moves, does not subscribe at the server twice. A snapshot never changes; a change makes a new
 * one. A store without subscribers holds nothing but its key.
 */
import { Calls } from './call.js';
import { RollcallError } from './error.js';
import { READY } from './link.js';
import { TypingNotice } from './typing_notice.js';

/** How long a store outlives its last subscriber. */
const LINGER_MS = 250;

/** Contacts that useFriends() shows. */
const FRIENDS_MAX = 1000;

class Store {
  #initial;
  #start;
  #snapshot;
  #listeners = new Set();
  #stop = null;
  #timer;

  /** `initial()` is the first snapshot. `start(store)` begins to call set(), and returns the function that ends it. */
  constructor(initial, start) {
    this.#initial = initial;
    this.#snapshot = initial();
    this.#start = start;
  }

  getSnapshot = () => this.#snapshot;

  subscribe = (listener) => {
    const entry = () => listener();
    clearTimeout(this.#timer);
    this.#listeners.add(entry);
    this.#stop ??= this.#start(this);
    return () => {
      this.#listeners.delete(entry);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#end(), LINGER_MS);
    };
  };

  set(snapshot) {
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    for (const listener of [...this.#listeners]) listener();
  }

  /** Replaces some fields of a snapshot that is an object. */
  update(fields) {
    this.set({ ...this.#snapshot, ...fields });
  }

  #end() {
    this.#stop();
    this.#stop = null;
    this.#snapshot = this.#initial();
  }
}

/** Runs the functions that listeners have returned. */
const stopAll = (stops) => () => stops.forEach((stop) => stop());

export class Stores {
  #client;
  #calls = null;
  #byKey = new Map();
  #wanted = new Set();
  #unwanted = new Set();
  #flushing = false;

  constructor(client) {
    this.#client = client;
  }

  /** The state of the connection. */
  connection() {
    return this.#get('connection', () => this.#client.state, (store) => {
      store.set(this.#client.state);
      return this.#client.on('state', ({ state }) => store.set(state));
    });
  }

  presence(userId) {
    return this.#get(`presence ${userId}`, () => this.#client.presence(userId), (store) => {
      const show = () => store.set(this.#client.presence(userId));
      const stop = this.#client.on('presence', ({ user_id: changed }) => changed === userId && show());
      this.#want(userId);
      show();
      return stopAll([stop, () => this.#unwant(userId)]);
    });
  }

  friends() {
    const initial = () => ({ friends: [], isLoaded: false, error: null });
    return this.#get('friends', initial, (store) => this.#startFriends(store));
  }

  chat(chatId) {
    const shown = { list: null, notice: null };
    const initial = () => ({ ...NO_CHAT, actions: actionsOf(shown) });
    return this.#get(`chat ${chatId}`, initial, (store) => this.#startChat(store, chatId, shown));
  }

  /** Calls live as long as the client: a call goes on when no component shows it. */
  calls(given) {
    this.#calls = given ?? this.#calls ?? new Calls(this.#client);
    return this.#calls;
  }

  #get(key, initial, start) {
    let store = this.#byKey.get(key);
    if (store === undefined) {
      store = new Store(initial, start);
      this.#byKey.set(key, store);
    }
    return store;
  }

  // --- Presence: the components of one rendering subscribe with one request -----------------------

  #want(userId) {
    if (!this.#unwanted.delete(userId)) this.#wanted.add(userId);
    this.#flushSoon();
  }

  #unwant(userId) {
    if (!this.#wanted.delete(userId)) this.#unwanted.add(userId);
    this.#flushSoon();
  }

  #flushSoon() {
    if (this.#flushing) return;
    this.#flushing = true;
    setTimeout(() => this.#flush(), 0); // after all timers and effects that are due now
  }

  #flush() {
    this.#flushing = false;
    const [wanted, unwanted] = [[...this.#wanted], [...this.#unwanted]];
    this.#wanted.clear();
    this.#unwanted.clear();
    if (unwanted.length > 0) this.#client.unsubscribePresence(unwanted).catch(() => {});
    if (wanted.length > 0) this.#subscribe(wanted);
  }

  /** Beyond the server's limit the presence is only queried; contacts are pushed all the same. */
  async #subscribe(userIds) {
    try {
      await this.#client.subscribePresence(userIds);
    } catch (error) {
      if (error.code !== 'SUBSCRIPTION_LIMIT') return; // after other errors the next connection subscribes
      await this.#client.queryPresence(userIds).catch(() => {});
    }
  }

  // --- Contacts -----------------------------------------------------------------------------------

  #startFriends(store) {
    const client = this.#client;
    const controller = new AbortController();
    const withPushed = (friend) => {
      const pushed = client.presence(friend.user_id); // perhaps while the list was on its way
      return pushed?.version > friend.version ? newest(friend, pushed) : friend;
    };
    const load = onceAtATime(async () => {
      try {
        const friends = [];
        for await (const friend of client.api.eachFriend({ signal: controller.signal }))
          if (friends.push(friend) >= FRIENDS_MAX) break;
        store.set({ friends: friends.map(withPushed), isLoaded: true, error: null });
      } catch (error) {
        if (!controller.signal.aborted) store.update({ error });
      }
    });
    const showPresence = (presence) => {
      const isChanged = ({ user_id: userId }) => userId === presence.user_id;
      const { friends } = store.getSnapshot();
      if (!friends.some(isChanged)) return;
      store.update({
        friends: friends.map((friend) => (isChanged(friend) ? newest(friend, presence) : friend)),
      });
    };
    if (client.state === READY) load();
    return stopAll([
      client.on('presence', showPresence),
      client.on('state', ({ state }) => state === READY && load()),
      ...['contact_accepted', 'contact_removed', 'sync_required'].map((push) => client.on(push, load)),
      () => controller.abort(),
    ]);
  }

  // --- Chats --------------------------------------------------------------------------------------

  #startChat(store, chatId, shown) {
    const client = this.#client;
    const list = client.messageList(chatId);
    const notice = new TypingNotice((typing) => client.typing(chatId, typing));
    Object.assign(shown, { list, notice });
    const show = () =>
      store.update({ messages: list.messages, isLoaded: list.isLoaded, hasEarlier: list.hasEarlier });
    const open = () =>
      list.open().then(
        () => store.update({ error: null }),
        (error) => store.update({ error }),
      );
    const inChat = (push, listener) =>
      client.on(push, (payload) => payload.chat_id === chatId && listener(payload));
    const setTyping = (userId, typing) => {
      const others = store.getSnapshot().typing.filter((other) => other !== userId);
      store.update({ typing: typing ? [...others, userId] : others });
    };
    open();
    return stopAll([
      list.subscribe(show),
      client.on('state', ({ state }) => state === READY && !list.isLoaded && open()),
      inChat('chat', ({ typing }) => store.update({ typing })),
      inChat('typing', ({ user_id: userId, typing }) => setTyping(userId, typing)),
      inChat('receipt', ({ user_id: userId, sequence }) =>
        store.update({ reads: { ...store.getSnapshot().reads, [userId]: sequence } }),
      ),
      () => notice.stopped(),
      () => list.close().catch(() => {}),
      () => list.dispose(),
      () => Object.assign(shown, { list: null, notice: null }),
    ]);
  }
}

const NO_CHAT = { messages: [], isLoaded: false, hasEarlier: false, error: null, typing: [], reads: {} };

/** What a component can do with a chat: functions that stay the same. `shown` has the list while it is shown. */
function actionsOf(shown) {
  const withList = (act) =>
    shown.list === null
      ? Promise.reject(new RollcallError('CLOSED', 'no component shows this chat'))
      : act(shown.list);
  return {
    send: (body) => {
      shown.notice?.sent();
      return withList((list) => list.send(body));
    },
    retry: (key) => withList((list) => list.retry(key)),
    drop: (key) => shown.list?.drop(key),
    fetchEarlier: (options) => withList((list) => list.fetchEarlier(options)),
    markRead: () => shown.list?.markRead() ?? false,
    setTyping: (typing) => (typing ? shown.notice?.typed() : shown.notice?.stopped()),
  };
}

/** Runs `work` again after it has ended, if it was asked for meanwhile. */
function onceAtATime(work) {
  let running = false;
  let again = false;
  const run = async () => {
    again = running;
    if (running) return;
    running = true;
    await work();
    running = false;
    if (again) run();
  };
  return run;
}

/** A contact with the newer of two presences; version 0 means that it may no longer be seen. */
function newest(friend, presence) {
  const isOlder = presence.version > 0 && presence.version < friend.version;
  return isOlder ? friend : { ...friend, reason: undefined, stale: undefined, ...presence };
}
