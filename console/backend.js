/** The REST requests of the page: one method for each. */
import { RollcallError } from '/client/rollcall.js';

/** The limit of one presence query. */
const LIST_MAX = 100;

const CHAT_PAGES_MAX = 10;

const DEFAULT_VISIBILITY = 'contacts_only';

const part = encodeURIComponent;

export class Backend {
  #token = null;
  #name;

  constructor(name) {
    this.#name = name;
  }

  /** Promises a token for the name; only a server in dev mode issues one. */
  async signIn() {
    const response = await send('POST', '/dev/token', { user: this.#name });
    if (response.status === 404) {
      throw new RollcallError(
        'UNAUTHENTICATED',
        'This server does not issue tokens by name. Start it with --dev to use this page.',
      );
    }
    if (response.status === 400)
      throw new RollcallError('UNAUTHENTICATED', 'This name cannot be used.');
    if (!response.ok) throw new Error(`The server answered ${response.status}.`);
    this.#token = (await response.json()).token;
    return this.#token;
  }

  // --- Settings -----------------------------------------------------------------------------------

  settings() {
    return this.#request('GET', '/v1/me');
  }

  changeSettings(changes) {
    return this.#request('PATCH', '/v1/me', changes);
  }

  /**
   * By default only contacts see each other, but the users of this page have no contacts at first.
   * So it shows a user to everyone, unless the user has changed the settings.
   */
  async showToEveryone() {
    const settings = await this.settings();
    const { presence_visibility: presence, last_seen_visibility: lastSeen } = settings;
    if (presence !== DEFAULT_VISIBILITY || lastSeen !== DEFAULT_VISIBILITY) return settings;
    return this.changeSettings({
      presence_visibility: 'everyone',
      last_seen_visibility: 'everyone',
    });
  }

  // --- Contacts -----------------------------------------------------------------------------------

  async friends() {
    return (await this.#request('GET', `/v1/friends?limit=${LIST_MAX}`)).friends;
  }

  contactRequests() {
    return this.#request('GET', `/v1/contact-requests?limit=${LIST_MAX}`);
  }

  requestContact(to) {
    return this.#request('POST', '/v1/contact-requests', { to });
  }

  acceptContact(requestId) {
    return this.#request('POST', `/v1/contact-requests/${part(requestId)}/accept`);
  }

  declineContact(requestId) {
    return this.#request('POST', `/v1/contact-requests/${part(requestId)}/decline`);
  }

  withdrawContact(requestId) {
    return this.#request('DELETE', `/v1/contact-requests/${part(requestId)}`);
  }

  removeContact(name) {
    return this.#request('DELETE', `/v1/contacts/${part(name)}`);
  }

  async blocked() {
    const { blocks } = await this.#request('GET', '/v1/blocks');
    return blocks.map(({ user_id: name }) => name);
  }

  block(name) {
    return this.#request('PUT', `/v1/blocks/${part(name)}`);
  }

  unblock(name) {
    return this.#request('DELETE', `/v1/blocks/${part(name)}`);
  }

  // --- Chats --------------------------------------------------------------------------------------

  /** Promises the one chat of the two users, which the server creates if there is none. */
  directChat(name) {
    return this.#request('POST', '/v1/chats', { direct_with: name });
  }

  createGroup(chatId, members) {
    return this.#request('POST', '/v1/chats', { chat_id: chatId, members });
  }

  chat(chatId) {
    return this.#request('GET', `/v1/chats/${part(chatId)}`);
  }

  addMember(chatId, name) {
    return this.#request('PUT', `/v1/chats/${part(chatId)}/members/${part(name)}`);
  }

  removeMember(chatId, name) {
    return this.#request('DELETE', `/v1/chats/${part(chatId)}/members/${part(name)}`);
  }

  setAdmin(chatId, name, isAdmin) {
    const path = `/v1/chats/${part(chatId)}/admins/${part(name)}`;
    return this.#request(isAdmin ? 'PUT' : 'DELETE', path);
  }

  letMembersAdd(chatId, allowed) {
    return this.#request('PATCH', `/v1/chats/${part(chatId)}`, { members_can_add: allowed });
  }

  /** Promises the chats with the latest activity, at most CHAT_PAGES_MAX pages of them. */
  async chats() {
    const chats = [];
    let cursor = '';
    for (let page = 0; page < CHAT_PAGES_MAX && cursor !== null; page += 1) {
      const path = `/v1/chats?limit=${LIST_MAX}${cursor && `&cursor=${part(cursor)}`}`;
      const answer = await this.#request('GET', path);
      chats.push(...answer.chats);
      cursor = answer.has_more ? answer.next_cursor : null;
    }
    return chats;
  }

  async #request(method, path, body) {
    const response = await send(method, path, body, this.#token);
    if (response.status === 204) return null;
    const answer = await response.json().catch(() => ({}));
    if (response.ok) return answer;
    const { code = 'SERVICE_UNAVAILABLE', message = `The server answered ${response.status}.` } =
      answer.error ?? {};
    throw new RollcallError(code, message);
  }
}

function send(method, path, body, token) {
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token !== undefined) headers.Authorization = `Bearer ${token}`;
  return fetch(path, { method, headers, body: body && JSON.stringify(body) });
}
