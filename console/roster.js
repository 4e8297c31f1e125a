/**
 * The user's relations to other users, for all panels.
 *
 *   watched    users in other tabs, or with an outgoing request: subscribed to
 *   incoming   contact requests that the user has not answered
 *   outgoing   contact requests that others have not answered
 *   friends    contacts; the server pushes their presence without a subscription
 *   blocked    users whom the user has blocked
 *
 * A friend is in no other set. Pushes from the server and actions of the user change the same sets
 * and call `onChange`, so their order does not matter, nor which tab made the change.
 */

/** The server allows 20 subscriptions; one of them is for the user's own presence. */
export const WATCHED_MAX = 19;

/** The limit of one presence query. */
const LIST_MAX = 100;

const sorted = (names) => [...names].sort((left, right) => left.localeCompare(right));

export class Roster {
  #client;
  #api;
  #me;
  #profiles;
  #onChange;
  #onFriendRemoved;
  #watched = new Set();
  #friends = new Set();
  #blocked = new Set();
  #incoming = new Map();
  #outgoing = new Map();

  /** `onChange()` after every change; `onFriendRemoved(name)` when a contact is removed. */
  constructor({ client, me, profiles, onChange, onFriendRemoved }) {
    this.#client = client;
    this.#api = client.api;
    this.#me = me;
    this.#profiles = profiles;
    this.#onChange = onChange;
    this.#onFriendRemoved = onFriendRemoved;
    client.on('contact_request', ({ from, request_id: id }) => {
      this.#incoming.set(from, id);
      this.#onChange();
    });
    client.on('contact_accepted', ({ user_id: name }) => {
      this.#onAccepted(name);
      this.load().catch(() => {}); // for the contact's name; the next reconnect reads it again
    });
    client.on('contact_removed', ({ user_id: name }) => this.#onRemoved(name));
  }

  get friends() {
    return sorted(this.#friends);
  }

  get incoming() {
    return [...this.#incoming.keys()];
  }

  get blocked() {
    return sorted(this.#blocked);
  }

  /** The watched users without an incoming request. */
  get others() {
    return [...this.#watched].filter((name) => !this.#incoming.has(name));
  }

  isFriend(name) {
    return this.#friends.has(name);
  }

  isRequested(name) {
    return this.#outgoing.has(name);
  }

  /** Reads all sets after every connect; pushes keep them up to date. */
  async load() {
    const [{ friends: contacts }, requests, blocked] = await Promise.all([
      this.#api.friends({ limit: LIST_MAX }),
      this.#api.contactRequests({ limit: LIST_MAX }),
      this.#api.blocks(),
    ]);
    for (const contact of contacts) this.#profiles.set(contact.user_id, contact);
    const friends = contacts.map(({ user_id: name }) => name);
    for (const name of this.#friends) if (!friends.includes(name)) this.#onRemoved(name);
    this.#friends = new Set(friends);
    this.#blocked = new Set(blocked);
    this.#incoming = new Map(requests.incoming.map(({ from, id }) => [from, id]));
    this.#outgoing = new Map(requests.outgoing.map(({ to, id }) => [to, id]));
    this.#unwatch([...this.#watched].filter((name) => !this.#mayWatch(name)));
    this.#onChange();
    const outgoing = [...this.#outgoing.keys()].slice(0, WATCHED_MAX - this.#watched.size);
    await Promise.all([
      this.watch(outgoing),
      friends.length > 0 ? this.#client.queryPresence(friends) : null,
    ]);
  }

  /** Subscribes to users without another relation; throws errors for the user to read. */
  async watch(names) {
    const added = names.filter((name) => !this.#watched.has(name) && this.#mayWatch(name));
    if (this.#watched.size + added.length > WATCHED_MAX)
      throw new Error(`At most ${WATCHED_MAX} people can be watched.`);
    if (added.length === 0) return;
    for (const name of added) this.#watched.add(name);
    this.#onChange();
    await this.#client.subscribePresence(added);
  }

  /** Unsubscribes, and withdraws an outgoing request. */
  async forget(name) {
    const requestId = this.#outgoing.get(name);
    this.#outgoing.delete(name);
    this.#unwatch([name]);
    this.#onChange();
    if (requestId) await this.#api.withdrawContact(requestId);
  }

  async request(name) {
    if (name === this.#me) throw new Error('That is you.');
    if (this.#friends.has(name)) throw new Error(`${name} is a contact already.`);
    if (this.#blocked.has(name)) throw new Error(`You have blocked ${name}.`);
    const { id, status } = await this.#api.requestContact(name);
    if (status === 'accepted') this.#onAccepted(name);
    else this.#outgoing.set(name, id);
    await this.watch([name]);
    this.#onChange();
  }

  async accept(name) {
    await this.#api.acceptContact(this.#incoming.get(name));
    this.#onAccepted(name);
  }

  async decline(name) {
    await this.#api.declineContact(this.#incoming.get(name));
    this.#incoming.delete(name);
    this.#onChange();
  }

  async remove(name) {
    await this.#api.removeContact(name);
    this.#onRemoved(name);
  }

  async block(name) {
    await this.#api.block(name);
    this.#blocked.add(name);
    this.#incoming.delete(name);
    this.#outgoing.delete(name);
    this.#unwatch([name]);
    this.#onRemoved(name);
  }

  async unblock(name) {
    await this.#api.unblock(name);
    this.#blocked.delete(name);
    this.#onChange();
  }

  #mayWatch(name) {
    return name !== this.#me && !this.#friends.has(name) && !this.#blocked.has(name);
  }

  #onAccepted(name) {
    this.#incoming.delete(name);
    this.#outgoing.delete(name);
    this.#blocked.delete(name);
    this.#friends.add(name);
    this.#unwatch([name]);
    this.#onChange();
  }

  #onRemoved(name) {
    if (this.#friends.delete(name)) this.#onFriendRemoved(name);
    this.#onChange();
  }

  #unwatch(names) {
    const unwatched = names.filter((name) => this.#watched.delete(name));
    if (unwatched.length > 0) this.#client.unsubscribePresence(unwatched).catch(() => {});
  }
}
