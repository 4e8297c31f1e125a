/** Contact requests, contacts and blocks, and the presence changes that contacts receive. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest, setVisibility, sleep } from '../support/client.mjs';
import {
  acceptContact,
  befriend,
  block,
  contactRequests,
  declineContact,
  expectRest,
  friends,
  removeContact,
  requestContact,
  unblock,
  uniqueUsers,
  withdrawContact,
} from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** Time in which an unexpected message would have arrived. */
const QUIET_MS = 150;

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
});
after(() => server.stop());
afterEach(closeAll);

/** Waits a moment; returns the presence changes of a user that were not taken. */
async function untakenChanges(client, user) {
  await sleep(QUIET_MS);
  await client.settle();
  return client.messages.filter(({ type, user_id }) => type === 'presence_changed' && user_id === user);
}

test('a contact request is listed for both users until it is accepted', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const bobs = await connect(server, bob);
  const made = await expectRest(server, 201, 'POST', '/v1/contact-requests', alice, { to: bob });
  assert.deepEqual({ to: made.to, status: made.status }, { to: bob, status: 'pending' });
  const received = await bobs.next('contact_request');
  assert.deepEqual(received, { type: 'contact_request', request_id: made.id, from: alice });
  const { incoming } = await contactRequests(server, bob);
  assert.deepEqual(
    incoming.map(({ id, from }) => ({ id, from })),
    [{ id: made.id, from: alice }],
  );
  assert.match(incoming[0].created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  const { outgoing } = await contactRequests(server, alice);
  assert.deepEqual(
    outgoing.map(({ id, to }) => ({ id, to })),
    [{ id: made.id, to: bob }],
  );
  await acceptContact(server, bob, made.id);
  assert.deepEqual((await contactRequests(server, bob)).incoming, []);
  assert.deepEqual((await contactRequests(server, alice)).outgoing, []);
  assert.deepEqual(
    (await friends(server, alice)).map(({ user_id }) => user_id),
    [bob],
  );
});

test('an acceptance reaches all devices of both users, who see each other at once', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const devices = [];
  for (const user of [alice, alice, bob, bob]) devices.push(await connect(server, user));
  await befriend(server, alice, bob);
  for (const [at, device] of devices.entries()) {
    const other = at < 2 ? bob : alice;
    assert.deepEqual(await device.next('contact_accepted'), {
      type: 'contact_accepted',
      user_id: other,
    });
    const { status, reason } = await device.nextChange(other);
    assert.deepEqual({ status, reason }, { status: 'online', reason: undefined });
    assert.deepEqual(await untakenChanges(device, other), []);
  }
  for (const device of devices) device.send({ type: 'heartbeat', active: false });
  for (const [at, device] of devices.entries()) await device.nextChange(at < 2 ? bob : alice, 'away');
});

test('contacts receive online, away and offline once per device; other users receive nothing', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  await befriend(server, alice, bob);
  const watchers = [await connect(server, alice), await connect(server, alice)];
  const unrelated = await connect(server, carol);
  const bobs = await connect(server, bob);
  bobs.send({ type: 'heartbeat', active: false });
  for (const watcher of watchers) await watcher.nextChange(bob, 'away');
  await bobs.close();
  for (const watcher of watchers) {
    const offline = await watcher.nextChange(bob, 'offline');
    assert.ok(Math.abs(Date.parse(offline.last_seen) - Date.now()) < 5000);
    const untaken = await untakenChanges(watcher, bob);
    assert.ok(untaken.length <= 1 && untaken.every(({ status }) => status === 'online'));
  }
  assert.deepEqual(await untakenChanges(unrelated, bob), []);
});

test('a contact who also subscribes receives each change once', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const watcher = await connect(server, alice);
  await watcher.subscribe(bob);
  const bobs = await connect(server, bob);
  await watcher.nextChange(bob, 'online');
  assert.deepEqual(await untakenChanges(watcher, bob), []);
  await bobs.close();
  await watcher.nextChange(bob, 'offline');
  assert.deepEqual(await untakenChanges(watcher, bob), []);
});

test('a repeated contact request is the same one; a request in return accepts it', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const first = await requestContact(server, alice, bob);
  const again = await rest(server, 'POST', '/v1/contact-requests', {
    user: alice,
    body: { to: bob },
  });
  assert.deepEqual([again.status, again.body], [200, first]);
  const alices = await connect(server, alice);
  const back = await expectRest(server, 201, 'POST', '/v1/contact-requests', bob, { to: alice });
  assert.equal(back.status, 'accepted');
  assert.equal((await alices.next('contact_accepted')).user_id, bob);
  const third = await requestContact(server, alice, bob);
  assert.deepEqual(third, { id: null, to: bob, status: 'accepted' });
  await acceptContact(server, bob, first.id);
});

test('declined and withdrawn contact requests are removed, and may be made again', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  for (const end of [
    (id) => declineContact(server, bob, id),
    (id) => withdrawContact(server, alice, id),
  ]) {
    const { id } = await requestContact(server, alice, bob);
    await end(id);
    assert.deepEqual((await contactRequests(server, alice)).outgoing, []);
    await expectRest(server, 404, 'POST', `/v1/contact-requests/${id}/accept`, bob);
    await expectRest(server, 404, 'POST', `/v1/contact-requests/${id}/decline`, bob);
    await expectRest(server, 404, 'DELETE', `/v1/contact-requests/${id}`, alice);
  }
  assert.deepEqual(await friends(server, alice), []);
});

test('users cannot accept or withdraw the contact requests of others', async () => {
  const [alice, bob, eve] = uniqueUsers('alice', 'bob', 'eve');
  const { id } = await requestContact(server, alice, bob);
  await expectRest(server, 404, 'POST', `/v1/contact-requests/${id}/accept`, eve);
  await expectRest(server, 404, 'POST', `/v1/contact-requests/${id}/accept`, alice);
  await expectRest(server, 404, 'DELETE', `/v1/contact-requests/${id}`, bob);
  assert.equal((await contactRequests(server, bob)).incoming.length, 1);
});

test('removing a contact hides both users from each other, and each is notified once', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const clients = { [alice]: await connect(server, alice), [bob]: await connect(server, bob) };
  await befriend(server, alice, bob);
  for (const [user, other] of [
    [alice, bob],
    [bob, alice],
  ])
    await clients[user].nextChange(other, 'online');
  await removeContact(server, alice, bob);
  for (const [user, other] of [
    [alice, bob],
    [bob, alice],
  ]) {
    const { timestamp, ...lost } = await clients[user].nextChange(other);
    assert.deepEqual(lost, {
      type: 'presence_changed',
      user_id: other,
      status: 'unknown',
      in_call: false,
      last_seen: null,
      version: 0,
      reason: 'not_contacts',
    });
    assert.ok(timestamp);
    assert.equal((await clients[user].next('contact_removed')).user_id, other);
  }
  for (const client of Object.values(clients)) client.send({ type: 'heartbeat', active: false });
  assert.deepEqual(await untakenChanges(clients[alice], bob), []);
  await clients[alice].close();
  assert.deepEqual(await untakenChanges(clients[bob], alice), []);
  assert.deepEqual(await friends(server, bob), []);
  await removeContact(server, bob, alice);
});

test('a block ends the contact, and hides later contact requests', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const bobs = await connect(server, bob);
  const alices = await connect(server, alice);
  await bobs.nextChange(alice, 'online');
  await block(server, alice, bob);
  const lost = await bobs.nextChange(alice);
  assert.deepEqual([lost.status, lost.reason], ['unknown', 'privacy']);
  assert.equal((await bobs.next('contact_removed')).user_id, alice);
  assert.equal((await alices.next('contact_removed')).user_id, bob);
  const request = await expectRest(server, 201, 'POST', '/v1/contact-requests', bob, { to: alice });
  assert.equal(request.status, 'pending');
  assert.deepEqual(await requestContact(server, bob, alice), request);
  assert.deepEqual((await contactRequests(server, alice)).incoming, []);
  await alices.settle();
  assert.ok(!alices.messages.some(({ type }) => type === 'contact_request'));
  await expectRest(server, 403, 'POST', '/v1/contact-requests', alice, { to: bob });
  assert.deepEqual((await expectRest(server, 200, 'GET', '/v1/blocks', alice)).blocks, [
    { user_id: bob },
  ]);
  await unblock(server, alice, bob);
  assert.deepEqual((await contactRequests(server, alice)).incoming, []);
  assert.deepEqual(await requestContact(server, bob, alice), request);
  assert.equal((await alices.next('contact_request')).request_id, request.id);
});

test('a change of the visibility setting takes effect for contacts at once', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const alices = await connect(server, alice);
  const bobs = await connect(server, bob);
  await alices.nextChange(bob, 'online');
  await setVisibility(server, bob, 'nobody');
  assert.equal((await alices.nextChange(bob)).reason, 'privacy');
  bobs.send({ type: 'heartbeat', active: false });
  assert.deepEqual(await untakenChanges(alices, bob), []);
  await setVisibility(server, bob, 'contacts_only');
  assert.equal((await alices.nextChange(bob)).status, 'away');
  await setVisibility(server, bob, 'everyone');
  assert.deepEqual(await untakenChanges(alices, bob), []);
  await setVisibility(server, bob, 'everyone', 'nobody');
  await untakenChanges(alices, bob);
  alices.messages.length = 0;
  await bobs.close();
  assert.equal((await alices.nextChange(bob, 'offline')).last_seen, null);
});

/** Creates a chat, and opens it on these clients. */
async function openChat(members, clients) {
  const [creator, ...others] = members;
  const { chat_id } = await expectRest(server, 201, 'POST', '/v1/chats', creator, {
    members: others,
  });
  for (const client of clients) await client.ask({ type: 'open_chat', chat_id });
  return chat_id;
}

test('a change comes once, even to a contact who shares two open chats', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  await befriend(server, alice, bob);
  await setVisibility(server, bob, 'everyone');
  const [contact, unrelated] = [await connect(server, alice), await connect(server, carol)];
  for (let chats = 0; chats < 2; chats += 1) await openChat([alice, bob, carol], [contact, unrelated]);
  const bobs = await connect(server, bob);
  for (const client of [contact, unrelated]) {
    await client.nextChange(bob, 'online');
    assert.deepEqual(await untakenChanges(client, bob), []);
  }
  await bobs.close();
  for (const client of [contact, unrelated]) {
    assert.notEqual((await client.nextChange(bob, 'offline')).last_seen, null);
    assert.deepEqual(await untakenChanges(client, bob), []);
  }
});

test('users with the chat open lose and gain visibility with the setting, once; contacts keep it', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  await befriend(server, alice, bob);
  await setVisibility(server, bob, 'everyone', 'contacts_only');
  const bobs = await connect(server, bob);
  const [contact, unrelated] = [await connect(server, alice), await connect(server, carol)];
  for (let chats = 0; chats < 2; chats += 1) await openChat([alice, bob, carol], [contact, unrelated]);
  await setVisibility(server, bob, 'contacts_only');
  assert.equal((await unrelated.nextChange(bob)).reason, 'not_contacts');
  bobs.send({ type: 'heartbeat', active: false });
  await contact.nextChange(bob, 'away');
  assert.deepEqual(await untakenChanges(unrelated, bob), []);
  assert.deepEqual(await untakenChanges(contact, bob), []);
  await setVisibility(server, bob, 'everyone', 'contacts_only');
  assert.equal((await unrelated.nextChange(bob)).status, 'away');
  assert.deepEqual(await untakenChanges(contact, bob), []);
  await setVisibility(server, bob, 'nobody');
  for (const client of [contact, unrelated]) {
    assert.equal((await client.nextChange(bob)).reason, 'privacy');
    assert.deepEqual(await untakenChanges(client, bob), []);
  }
});

test('last seen is shown to contacts and hidden from other members of an open chat', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  await befriend(server, alice, bob);
  await setVisibility(server, bob, 'everyone', 'contacts_only');
  const bobs = await connect(server, bob);
  const [contact, unrelated] = [await connect(server, alice), await connect(server, carol)];
  await openChat([alice, bob, carol], [contact, unrelated]);
  await bobs.close();
  assert.notEqual((await contact.nextChange(bob, 'offline')).last_seen, null);
  assert.equal((await unrelated.nextChange(bob, 'offline')).last_seen, null);
});

test('a blocked user loses visibility in open chats, and regains it after the block', async () => {
  const [alice, bob, carol] = uniqueUsers('alice', 'bob', 'carol');
  await setVisibility(server, bob, 'everyone');
  const bobs = await connect(server, bob);
  const [blocked, other] = [await connect(server, alice), await connect(server, carol)];
  await openChat([alice, bob, carol], [blocked, other]);
  await block(server, bob, alice);
  assert.equal((await blocked.nextChange(bob)).reason, 'privacy');
  bobs.send({ type: 'heartbeat', active: false });
  await other.nextChange(bob, 'away');
  assert.deepEqual(await untakenChanges(blocked, bob), []);
  await unblock(server, bob, alice);
  assert.equal((await blocked.nextChange(bob)).status, 'away');
  assert.deepEqual(await untakenChanges(other, bob), []);
});

test('the list of friends is filtered and paged', async () => {
  const [alice, ...others] = uniqueUsers('alice', 'bob', 'carol', 'dave', 'erin', 'frank');
  for (const other of others) await befriend(server, alice, other);
  const [bob, carol, dave] = others;
  await connect(server, bob);
  const carols = await connect(server, carol);
  await connect(server, dave);
  await setVisibility(server, dave, 'nobody');
  carols.send({ type: 'heartbeat', active: false });
  await carols.settle();
  const ids = async (query) => (await friends(server, alice, query)).map(({ user_id }) => user_id);
  assert.deepEqual(await ids(''), others);
  assert.deepEqual(await ids('?status=online'), [bob]);
  assert.deepEqual(await ids('?status=away'), [carol]);
  assert.deepEqual(await ids('?status=unknown'), [dave]);
  assert.deepEqual(await ids('?status=offline'), others.slice(3));
  assert.deepEqual(await ids('?in_call=true'), []);
  assert.deepEqual(await ids('?in_call=false'), others);
  const pages = [];
  for (let after, more = true; more; ) {
    const query = `?limit=2${after === undefined ? '' : `&after=${after}`}`;
    const page = await expectRest(server, 200, 'GET', `/v1/friends${query}`, alice);
    pages.push(page.friends.map(({ user_id }) => user_id));
    after = pages.at(-1).at(-1);
    more = page.has_more;
  }
  assert.deepEqual(pages, [others.slice(0, 2), others.slice(2, 4), others.slice(4)]);
});

test('invalid input is refused', async () => {
  const [alice] = uniqueUsers('alice');
  const post = (body) => rest(server, 'POST', '/v1/contact-requests', { user: alice, body });
  for (const body of [{}, { to: '' }, { to: 7 }, { to: alice }, { to: 'x'.repeat(129) }, { to: 'a\n' }]) {
    const answer = await post(body);
    assert.deepEqual([answer.status, answer.body.error.code], [400, 'INVALID_MESSAGE']);
  }
  for (const [method, path] of [
    ['DELETE', `/v1/contacts/${alice}`],
    ['PUT', `/v1/blocks/${alice}`],
    ['DELETE', `/v1/blocks/${'x'.repeat(129)}`],
    ['GET', '/v1/friends?status=busy'],
    ['GET', '/v1/friends?in_call=maybe'],
    ['GET', '/v1/friends?limit=0'],
    ['GET', '/v1/friends?limit=1001'],
    ['GET', '/v1/contact-requests?limit=x'],
  ])
    await expectRest(server, 400, method, path, alice);
  await expectRest(server, 404, 'POST', '/v1/contact-requests/none/accept', alice);
  await expectRest(server, 204, 'DELETE', '/v1/contacts/nobody-here', alice);
  await expectRest(server, 204, 'DELETE', '/v1/blocks/nobody-here', alice);
  await expectRest(server, 405, 'PATCH', '/v1/friends', alice);
});

test('contacts survive a crash, and receive each other’s presence after it', async () => {
  const own = await startServer();
  await befriend(own, 'alice', 'bob');
  const { dataDir } = own;
  const again = { dataDir, port: 0 };
  await own.child.kill('SIGKILL');
  await new Promise((resolve) => own.child.once('exit', resolve));
  const second = await startServer(again);
  const alices = await connect(second, 'alice');
  await connect(second, 'bob');
  await alices.nextChange('bob', 'online');
  await second.stop();
  await own.stop();
});
