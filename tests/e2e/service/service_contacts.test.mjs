/** Contacts that the application makes and ends, and whole lists of them. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { block, friends, requestContact, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

let server;
let backend;

before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
  backend = await server.token('backend', { scope: 'service' });
});
after(() => server.stop());
afterEach(closeAll);

const service = (method, path, body) => rest(server, method, `/v1/service${path}`, { token: backend, body });
const contactsOf = async (user) => (await friends(server, user)).map(({ user_id: id }) => id).sort();

test('a contact that the application makes is told to both, with presence, and so is its end', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const alices = await connect(server, alice);
  const bobs = await connect(server, bob);
  assert.equal((await service('PUT', `/contacts/${alice}/${bob}`)).status, 204);
  assert.equal((await alices.next('contact_accepted')).user_id, bob);
  assert.equal((await bobs.next('contact_accepted')).user_id, alice);
  await alices.nextChange(bob, 'online');
  await bobs.nextChange(alice, 'online');
  assert.deepEqual(await contactsOf(alice), [bob]);
  assert.equal((await service('PUT', `/contacts/${bob}/${alice}`)).status, 204);
  assert.equal((await service('DELETE', `/contacts/${bob}/${alice}`)).status, 204);
  await alices.nextChange(bob, 'unknown');
  assert.equal((await alices.next('contact_removed')).user_id, bob);
  assert.equal((await bobs.next('contact_removed')).user_id, alice);
  assert.deepEqual(await contactsOf(bob), []);
  assert.equal((await service('DELETE', `/contacts/${bob}/${alice}`)).status, 204);
  for (const client of [alices, bobs]) {
    const untaken = (await client.settle()).map(({ type }) => type);
    assert.ok(!untaken.some((type) => type.startsWith('contact_')), `nothing is told twice: ${untaken}`);
  }
});

test('a contact ends the contact request between the two', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { id } = await requestContact(server, alice, bob);
  assert.equal((await service('PUT', `/contacts/${alice}/${bob}`)).status, 204);
  const { body } = await rest(server, 'GET', '/v1/contact-requests', { user: bob });
  assert.deepEqual(body.incoming, []);
  assert.equal((await rest(server, 'POST', `/v1/contact-requests/${id}/accept`, { user: bob })).status, 200);
});

test('a whole list makes what is missing and ends what is too much', async () => {
  const [alice, bob, carol, dave, eve] = uniqueUsers('alice', 'bob', 'carol', 'dave', 'eve');
  const path = `/users/${alice}/contacts`;
  const first = await service('PUT', path, { contacts: [bob, carol, bob] });
  assert.deepEqual(first.body, { user_id: alice, added: 2, removed: 0, refused: [] });
  const clients = new Map();
  for (const user of [alice, bob, carol, dave]) clients.set(user, await connect(server, user));
  await block(server, eve, alice);
  const second = await service('PUT', path, { contacts: [carol, dave, eve] });
  assert.equal(second.status, 200);
  assert.deepEqual(second.body, {
    user_id: alice,
    added: 1,
    removed: 1,
    refused: [{ user_id: eve, reason: 'blocked' }],
  });
  assert.deepEqual(await contactsOf(alice), [carol, dave].sort());
  assert.equal((await clients.get(bob).next('contact_removed')).user_id, alice);
  assert.equal((await clients.get(dave).next('contact_accepted')).user_id, alice);
  await clients.get(dave).nextChange(alice, 'online');
  await clients.get(alice).nextChange(dave, 'online');
  const carols = (await clients.get(carol).settle()).map(({ type }) => type);
  assert.ok(!carols.some((type) => type.startsWith('contact_')), `${carols}`);
  const third = await service('PUT', path, { contacts: [] });
  assert.deepEqual([third.body.added, third.body.removed], [0, 2]);
  assert.deepEqual(await contactsOf(alice), []);
});

test('a list of many contacts is replaced by another', async () => {
  const [owner] = uniqueUsers('owner');
  const names = (prefix) => Array.from({ length: 900 }, (_, at) => `${prefix}-${at}`);
  const put = (contacts) => service('PUT', `/users/${owner}/contacts`, { contacts });
  assert.equal((await put([...names('old'), 'kept'])).body.added, 901);
  const { body } = await put([...names('new'), 'kept']);
  assert.deepEqual([body.added, body.removed], [900, 900]);
  const listed = await contactsOf(owner);
  assert.equal(listed.length, 901);
  assert.ok(listed.includes('new-899') && listed.includes('kept') && !listed.includes('old-0'));
});

test('bad contacts are refused with what is wrong', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const long = 'x'.repeat(129);
  for (const path of [`/contacts/${alice}/${alice}`, `/contacts/${alice}/${long}`, `/contacts/${long}/${bob}`, `/contacts/a%07/${bob}`])
    assert.equal((await service('PUT', path)).status, 400, path);
  await block(server, bob, alice);
  const refused = await service('PUT', `/contacts/${alice}/${bob}`);
  assert.equal(refused.status, 403);
  assert.match(refused.body.error.message, /blocked/);
  const list = `/users/${alice}/contacts`;
  const many = Array.from({ length: 10001 }, (_, at) => `u${at}`);
  for (const body of [{}, { contacts: 'bob' }, { contacts: [1] }, { contacts: [alice] }, { contacts: [''] }, { contacts: many }, []])
    assert.equal((await service('PUT', list, body)).status, 400, JSON.stringify(body).slice(0, 40));
});

test('with contacts.managed_by=application users neither request nor remove, but they block', async () => {
  const managed = await startServer({ settings: { 'contacts.managed_by': 'application' } });
  try {
    const token = await managed.token('backend', { scope: 'service' });
    const [alice, bob] = uniqueUsers('alice', 'bob');
    const asUser = (method, path, body) => rest(managed, method, path, { user: alice, body });
    const requested = await asUser('POST', '/v1/contact-requests', { to: bob });
    assert.equal(requested.status, 403);
    assert.equal(requested.body.error.code, 'FORBIDDEN');
    assert.match(requested.body.error.message, /application/);
    assert.equal((await rest(managed, 'PUT', `/v1/service/contacts/${alice}/${bob}`, { token })).status, 204);
    assert.equal((await asUser('DELETE', `/v1/contacts/${bob}`)).status, 403);
    assert.equal((await asUser('POST', '/v1/contact-requests/any/accept')).status, 403);
    assert.equal((await friends(managed, alice)).length, 1);
    assert.equal((await asUser('PUT', `/v1/blocks/${bob}`)).status, 204);
    assert.equal((await friends(managed, alice)).length, 0);
    assert.equal((await asUser('DELETE', `/v1/blocks/${bob}`)).status, 204);
  } finally {
    await managed.stop();
  }
});
