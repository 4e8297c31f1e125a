/**
 * The HTTP API, one method for each request of a user. It needs no connection.
 *
 * Answers are the server's objects, and their fields keep the names of the protocol. The last argument of every method
 * may have `signal` (an AbortSignal) and `timeoutMs`. Failures are RollcallErrors (http.js).
 *
 * Lists come a page at a time. eachFriend(), eachChat() and eachMessage() read the pages one after the other:
 *
 *   for await (const chat of api.eachChat()) …
 */
import { Http } from './http.js';
import { Timers } from './timers.js';
import { TokenSource } from './token.js';
import { apiUrl, uniqueId } from './util.js';

const part = encodeURIComponent;

/** How many a page of eachChat() and eachFriend() has. */
const PAGE_ITEMS = 100;

/** How many a page of eachMessage() has; the server's maximum is 500. */
const PAGE_MESSAGES = 200;

export class RollcallApi {
  #http;

  /** A client has one already (`client.api`); on its own it takes `{url, token, getToken, fetch, timers}`. */
  constructor({ url, token, getToken, tokens, fetch, timers }) {
    const clock = new Timers(timers);
    this.#http = new Http({
      url: apiUrl(url),
      tokens: tokens ?? new TokenSource({ token, getToken, now: () => clock.now() }),
      fetch,
      timers: clock,
    });
  }

  /** Any request of the API; `options` has `query`, `body`, `signal` and `timeoutMs`. */
  request(method, path, options) {
    return this.#http.request(method, path, options);
  }

  // --- Settings -----------------------------------------------------------------------------------

  me(options) {
    return this.request('GET', '/v1/me', options);
  }

  /** Changes the given settings; promises all of them. */
  updateMe(changes, options) {
    return this.request('PATCH', '/v1/me', { ...options, body: changes });
  }

  // --- Presence -----------------------------------------------------------------------------------

  presence(userId, options) {
    return this.request('GET', `/v1/presence/${part(userId)}`, options);
  }

  /** At most 100 users. */
  async presences(userIds, options) {
    const query = { users: userIds.join(',') };
    return (await this.request('GET', '/v1/presence', { ...options, query })).presences;
  }

  // --- Contacts -----------------------------------------------------------------------------------

  /** One page of the contacts with their presence: `{friends, has_more}`, by id after `after`. */
  friends({ status, inCall, after, limit, ...options } = {}) {
    const query = { status, in_call: inCall, after, limit };
    return this.request('GET', '/v1/friends', { ...options, query });
  }

  async *eachFriend({ limit = PAGE_ITEMS, ...options } = {}) {
    for (let after, more = true; more; ) {
      const page = await this.friends({ ...options, limit, after });
      yield* page.friends;
      after = page.friends.at(-1)?.user_id;
      more = page.has_more && after !== undefined;
    }
  }

  /** `{incoming, outgoing, has_more}`; `after` and `limit` hold for each of the two lists. */
  contactRequests({ after, limit, ...options } = {}) {
    return this.request('GET', '/v1/contact-requests', { ...options, query: { after, limit } });
  }

  /** Promises `{id, to, status}`; `accepted` if the other user had sent a request too. */
  requestContact(userId, options) {
    return this.request('POST', '/v1/contact-requests', { ...options, body: { to: userId } });
  }

  acceptContact(requestId, options) {
    return this.request('POST', `/v1/contact-requests/${part(requestId)}/accept`, options);
  }

  declineContact(requestId, options) {
    return this.request('POST', `/v1/contact-requests/${part(requestId)}/decline`, options);
  }

  /** Takes back a request of one's own. */
  withdrawContact(requestId, options) {
    return this.request('DELETE', `/v1/contact-requests/${part(requestId)}`, options);
  }

  removeContact(userId, options) {
    return this.request('DELETE', `/v1/contacts/${part(userId)}`, options);
  }

  /** Promises the ids of the users whom the user has blocked. */
  async blocks(options) {
    const { blocks } = await this.request('GET', '/v1/blocks', options);
    return blocks.map(({ user_id: userId }) => userId);
  }

  block(userId, options) {
    return this.request('PUT', `/v1/blocks/${part(userId)}`, options);
  }

  unblock(userId, options) {
    return this.request('DELETE', `/v1/blocks/${part(userId)}`, options);
  }

  // --- Chats --------------------------------------------------------------------------------------

  /** One page by last activity: `{chats, has_more, next_cursor}`. */
  chats({ cursor, limit, ...options } = {}) {
    return this.request('GET', '/v1/chats', { ...options, query: { cursor, limit } });
  }

  async *eachChat({ limit = PAGE_ITEMS, ...options } = {}) {
    for (let cursor, more = true; more; ) {
      const page = await this.chats({ ...options, limit, cursor });
      yield* page.chats;
      cursor = page.next_cursor;
      more = page.has_more && cursor !== null;
    }
  }

  chat(chatId, options) {
    return this.request('GET', `/v1/chats/${part(chatId)}`, options);
  }

  /** Promises the one chat of the two users, which the server makes if there is none. */
  directChat(userId, options) {
    return this.request('POST', '/v1/chats', { ...options, body: { direct_with: userId } });
  }

  /** Makes a group with these members and the user; without `chatId` the server makes an id. */
  createGroup({ chatId, members, membersCanAdd }, options) {
    const body = { chat_id: chatId, members, members_can_add: membersCanAdd };
    return this.request('POST', '/v1/chats', { ...options, body });
  }

  /** Changes what `{membersCanAdd}` names; promises the chat. Only for admins. */
  updateChat(chatId, { membersCanAdd }, options) {
    const body = { members_can_add: membersCanAdd };
    return this.request('PATCH', `/v1/chats/${part(chatId)}`, { ...options, body });
  }

  addMember(chatId, userId, options) {
    return this.request('PUT', `/v1/chats/${part(chatId)}/members/${part(userId)}`, options);
  }

  /** Also leaves a group, with the user's own id. */
  removeMember(chatId, userId, options) {
    return this.request('DELETE', `/v1/chats/${part(chatId)}/members/${part(userId)}`, options);
  }

  addAdmin(chatId, userId, options) {
    return this.request('PUT', `/v1/chats/${part(chatId)}/admins/${part(userId)}`, options);
  }

  removeAdmin(chatId, userId, options) {
    return this.request('DELETE', `/v1/chats/${part(chatId)}/admins/${part(userId)}`, options);
  }

  // --- Messages -----------------------------------------------------------------------------------

  /** One page, forwards from `afterSequence` or backwards from `beforeSequence`, always in ascending order. */
  messages(chatId, { afterSequence, beforeSequence, limit, ...options } = {}) {
    const query = { after_sequence: afterSequence, before_sequence: beforeSequence, limit };
    return this.request('GET', `/v1/chats/${part(chatId)}/messages`, { ...options, query });
  }

  /** The messages of a chat backwards, the latest first, from before `beforeSequence` or from the end. */
  async *eachMessage(chatId, { beforeSequence, limit = PAGE_MESSAGES, ...options } = {}) {
    let before = beforeSequence ?? Number.MAX_SAFE_INTEGER;
    for (let more = true; more; ) {
      const page = await this.messages(chatId, { ...options, limit, beforeSequence: before });
      yield* [...page.messages].reverse();
      before = page.messages[0]?.sequence;
      more = page.has_more && before !== undefined;
    }
  }

  /** Sends without a connection. If there is no answer, repeat it with the same `clientMessageId`. */
  sendMessage(chatId, body, { clientMessageId = uniqueId(), ...options } = {}) {
    const message = { client_message_id: clientMessageId, body };
    return this.request('POST', `/v1/chats/${part(chatId)}/messages`, { ...options, body: message });
  }

  /** Moves the user's read mark; promises `{chat_id, sequence}` with the mark. */
  markRead(chatId, sequence, options) {
    return this.request('POST', `/v1/chats/${part(chatId)}/read`, { ...options, body: { sequence } });
  }

  // --- Calls --------------------------------------------------------------------------------------

  /** The last calls, the latest first. */
  async calls({ limit, ...options } = {}) {
    return (await this.request('GET', '/v1/calls', { ...options, query: { limit } })).calls;
  }

  /** `{iceServers, ttl_seconds}`, for an RTCPeerConnection. */
  ice(options) {
    return this.request('GET', '/v1/ice', options);
  }
}

/** Promises a token for any name; only servers in dev mode issue them. */
export async function devToken(userId, { url, fetch } = {}) {
  const http = new Http({ url: apiUrl(url), fetch });
  return (await http.request('POST', '/dev/token', { body: { user: userId } })).token;
}
