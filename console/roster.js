/**
 * Who is what to the user: the one place that knows, for all panels.
 *
 *   met       seen in this browser, or asked: watched by a presence subscription
 *   asking    wants to be a contact, waits for the user's answer
 *   asked     the user wants them, and waits for theirs
 *   friends   contacts; the server tells their presence unasked
 *   blocked
 *
 * A friend is nothing else beside. Pushes and the user's own actions both end in the sets below and
 * then in `onChange`, so it does not matter which of them, or which tab, was first.
 */

/** The server allows 20 subscriptions; one of them is for the user's own presence. */
export const MET_MAX = 19;

const sorted = (names) => [...names].sort((left, right) => left.localeCompare(right));

export class Roster {
  #client;
  #backend;
  #me;
  #onChange;
  #onGone;
  #met = new Set();
  #friends = new Set();
  #blocked = new Set();
  #asking = new Map();
  #asked = new Map();

  /** `onChange()` after every change; `onGone(name)` when a friend is one no longer. */
  constructor({ client, backend, me, onChange, onGone }) {
    this.#client = client;
    this.#backend = backend;
    this.#me = me;
    this.#onChange = onChange;
    this.#onGone = onGone;
    client.on('contact_request', ({ from, request_id: id }) => {
      this.#asking.set(from, id);
      this.#onChange();
    });
    client.on('contact_accepted', ({ user_id: name }) => this.#befriended(name));
    client.on('contact_removed', ({ user_id: name }) => this.#drop(name));
  }

  get friends() {
    return sorted(this.#friends);
  }

  get asking() {
    return [...this.#asking.keys()];
  }

  get blocked() {
    return sorted(this.#blocked);
  }

  /** Everybody watched who is not a friend, and not waiting for an answer. */
  get others() {
    return [...this.#met].filter((name) => !this.#asking.has(name));
  }

  isFriend(name) {
    return this.#friends.has(name);
  }

  isAsked(name) {
    return this.#asked.has(name);
  }

  /** Reads how things stand, after every connect: pushes go on from there. */
  async load() {
    const [friends, requests, blocked] = await Promise.all([
      this.#backend.friends(),
      this.#backend.contactRequests(),
      this.#backend.blocked(),
    ]);
    for (const name of this.#friends) if (!friends.includes(name)) this.#drop(name);
    this.#friends = new Set(friends);
    this.#blocked = new Set(blocked);
    this.#asking = new Map(requests.incoming.map(({ from, id }) => [from, id]));
    this.#asked = new Map(requests.outgoing.map(({ to, id }) => [to, id]));
    this.#unwatch([...this.#met].filter((name) => !this.#mayMeet(name)));
    this.#onChange();
    const asked = [...this.#asked.keys()].slice(0, MET_MAX - this.#met.size);
    await Promise.all([
      this.meet(asked),
      friends.length > 0 ? this.#client.queryPresence(friends) : null,
    ]);
  }

  /** Begins to watch those who are nothing yet; throws what the user should read. */
  async meet(names) {
    const added = names.filter((name) => !this.#met.has(name) && this.#mayMeet(name));
    if (this.#met.size + added.length > MET_MAX)
      throw new Error(`At most ${MET_MAX} people can be watched.`);
    if (added.length === 0) return;
    for (const name of added) this.#met.add(name);
    this.#onChange();
    await this.#client.subscribePresence(added);
  }

  /** Stops watching, and takes back what was asked. */
  async forget(name) {
    const requestId = this.#asked.get(name);
    this.#asked.delete(name);
    this.#unwatch([name]);
    this.#onChange();
    if (requestId) await this.#backend.withdrawContact(requestId);
  }

  async ask(name) {
    if (name === this.#me) throw new Error('That is you.');
    if (this.#friends.has(name)) throw new Error(`${name} is a contact already.`);
    if (this.#blocked.has(name)) throw new Error(`You have blocked ${name}.`);
    const { id, status } = await this.#backend.requestContact(name);
    if (status === 'accepted') this.#befriended(name);
    else this.#asked.set(name, id);
    await this.meet([name]);
    this.#onChange();
  }

  async accept(name) {
    await this.#backend.acceptContact(this.#asking.get(name));
    this.#befriended(name);
  }

  async decline(name) {
    await this.#backend.declineContact(this.#asking.get(name));
    this.#asking.delete(name);
    this.#onChange();
  }

  async remove(name) {
    await this.#backend.removeContact(name);
    this.#drop(name);
  }

  async block(name) {
    await this.#backend.block(name);
    this.#blocked.add(name);
    this.#asking.delete(name);
    this.#asked.delete(name);
    this.#unwatch([name]);
    this.#drop(name);
  }

  async unblock(name) {
    await this.#backend.unblock(name);
    this.#blocked.delete(name);
    this.#onChange();
  }

  #mayMeet(name) {
    return name !== this.#me && !this.#friends.has(name) && !this.#blocked.has(name);
  }

  #befriended(name) {
    this.#asking.delete(name);
    this.#asked.delete(name);
    this.#blocked.delete(name);
    this.#friends.add(name);
    this.#unwatch([name]);
    this.#onChange();
  }

  #drop(name) {
    if (this.#friends.delete(name)) this.#onGone(name);
    this.#onChange();
  }

  #unwatch(names) {
    const watched = names.filter((name) => this.#met.delete(name));
    if (watched.length > 0) this.#client.unsubscribePresence(watched).catch(() => {});
  }
}
