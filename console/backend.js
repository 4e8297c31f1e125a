/** What the page asks over HTTP, besides its connection: one method a question. */
import { RollcallError } from '/client/rollcall.js';

/** As many as one presence query takes; a page is no place for more. */
const LIST_MAX = 100;

const UNTOUCHED = 'contacts_only';

const part = encodeURIComponent;

export class Backend {
  #token = null;
  #name;

  constructor(name) {
    this.#name = name;
  }

  /** A token for the name, which only a server in dev mode hands out. */
  async signIn() {
    const response = await send('POST', '/dev/token', { user: this.#name });
    if (response.status === 404) {
      throw new RollcallError(
        'UNAUTHENTICATED',
        'This server hands out no tokens by name. Start it with --dev to use this page.',
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
    return this.#ask('GET', '/v1/me');
  }

  changeSettings(changes) {
    return this.#ask('PATCH', '/v1/me', changes);
  }

  /**
   * People on this page are strangers at first, and by default only contacts see each other. What
   * somebody has changed already is left alone.
   */
  async showMyself() {
    const settings = await this.settings();
    const { presence_visibility: presence, last_seen_visibility: lastSeen } = settings;
    if (presence !== UNTOUCHED || lastSeen !== UNTOUCHED) return settings;
    return this.changeSettings({
      presence_visibility: 'everyone',
      last_seen_visibility: 'everyone',
    });
  }

  // --- Contacts -----------------------------------------------------------------------------------

  async friends() {
    const { friends } = await this.#ask('GET', `/v1/friends?limit=${LIST_MAX}`);
    return friends.map(({ user_id: name }) => name);
  }

  contactRequests() {
    return this.#ask('GET', `/v1/contact-requests?limit=${LIST_MAX}`);
  }

  requestContact(to) {
    return this.#ask('POST', '/v1/contact-requests', { to });
  }

  acceptContact(requestId) {
    return this.#ask('POST', `/v1/contact-requests/${part(requestId)}/accept`);
  }

  declineContact(requestId) {
    return this.#ask('POST', `/v1/contact-requests/${part(requestId)}/decline`);
  }

  withdrawContact(requestId) {
    return this.#ask('DELETE', `/v1/contact-requests/${part(requestId)}`);
  }

  removeContact(name) {
    return this.#ask('DELETE', `/v1/contacts/${part(name)}`);
  }

  async blocked() {
    const { blocks } = await this.#ask('GET', '/v1/blocks');
    return blocks.map(({ user_id: name }) => name);
  }

  block(name) {
    return this.#ask('PUT', `/v1/blocks/${part(name)}`);
  }

  unblock(name) {
    return this.#ask('DELETE', `/v1/blocks/${part(name)}`);
  }

  // --- Chats --------------------------------------------------------------------------------------

  /** Makes the chat, or finds it if the other was first. */
  createChat(chatId, members) {
    return this.#ask('POST', '/v1/chats', { chat_id: chatId, members });
  }

  async chats() {
    return (await this.#ask('GET', `/v1/chats?limit=${LIST_MAX}`)).chats;
  }

  async #ask(method, path, body) {
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
