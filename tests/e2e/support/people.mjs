/** People with contacts: what the tests of contacts, privacy and friends share. */
import { rest } from './client.mjs';

/** A request that must be answered with `status`; its body. */
export async function expectRest(server, status, method, path, user, body) {
  const answer = await rest(server, method, path, { user, body });
  if (answer.status !== status)
    throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const path = (kind, id) => `/v1/${kind}/${encodeURIComponent(id)}`;

export const askContact = async (server, from, to) =>
  (await rest(server, 'POST', '/v1/contact-requests', { user: from, body: { to } })).body;

export const acceptContact = (server, user, id) =>
  expectRest(server, 200, 'POST', `${path('contact-requests', id)}/accept`, user);

export const declineContact = (server, user, id) =>
  expectRest(server, 200, 'POST', `${path('contact-requests', id)}/decline`, user);

export const withdrawContact = (server, user, id) =>
  expectRest(server, 204, 'DELETE', path('contact-requests', id), user);

export const removeContact = (server, user, peer) =>
  expectRest(server, 204, 'DELETE', path('contacts', peer), user);

export const block = (server, user, peer) =>
  expectRest(server, 204, 'PUT', path('blocks', peer), user);

export const unblock = (server, user, peer) =>
  expectRest(server, 204, 'DELETE', path('blocks', peer), user);

export async function befriend(server, a, b) {
  const { id } = await askContact(server, a, b);
  await acceptContact(server, b, id);
}

export const friends = async (server, user, query = '') =>
  (await expectRest(server, 200, 'GET', `/v1/friends${query}`, user)).friends;

export const requests = (server, user) =>
  expectRest(server, 200, 'GET', '/v1/contact-requests', user);

/** Names nobody else in the file uses. */
let lastPerson = 0;
export function people(...names) {
  lastPerson += 1;
  return names.map((name) => `${name}-${lastPerson}`);
}
