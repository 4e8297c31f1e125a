/** Contact requests, contacts and blocks over REST, and user ids that no other test uses. */
import { rest } from './client.mjs';

/** Sends a REST request that must be answered with `status`; returns the body. */
export async function expectRest(server, status, method, path, user, body) {
  const answer = await rest(server, method, path, { user, body });
  if (answer.status !== status)
    throw new Error(`${method} ${path}: ${answer.status}, not ${status}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

const path = (kind, id) => `/v1/${kind}/${encodeURIComponent(id)}`;

export const requestContact = async (server, from, to) =>
  (await rest(server, 'POST', '/v1/contact-requests', { user: from, body: { to } })).body;

export const acceptContact = (server, user, id) =>
  expectRest(server, 200, 'POST', `${path('contact-requests', id)}/accept`, user);

export const declineContact = (server, user, id) =>
  expectRest(server, 200, 'POST', `${path('contact-requests', id)}/decline`, user);

export const withdrawContact = (server, user, id) =>
  expectRest(server, 204, 'DELETE', path('contact-requests', id), user);

export const removeContact = (server, user, other) =>
  expectRest(server, 204, 'DELETE', path('contacts', other), user);

export const block = (server, user, other) =>
  expectRest(server, 204, 'PUT', path('blocks', other), user);

export const unblock = (server, user, other) =>
  expectRest(server, 204, 'DELETE', path('blocks', other), user);

export async function befriend(server, a, b) {
  const { id } = await requestContact(server, a, b);
  await acceptContact(server, b, id);
}

export const friends = async (server, user, query = '') =>
  (await expectRest(server, 200, 'GET', `/v1/friends${query}`, user)).friends;

export const contactRequests = (server, user) =>
  expectRest(server, 200, 'GET', '/v1/contact-requests', user);

let lastSuffix = 0;

/** The names, with a suffix that no other test in the file uses. */
export function uniqueUsers(...names) {
  lastSuffix += 1;
  return names.map((name) => `${name}-${lastSuffix}`);
}
