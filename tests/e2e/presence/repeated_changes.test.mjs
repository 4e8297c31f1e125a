/**
 * A client that gets no answer to a change repeats it. The ledger may already have the change while nobody
 * was notified, so the repetition must have all the effects of the change. The tests simulate the lost first
 * attempt by writing to the ledger's file.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { newChat } from '../support/chats.mjs';
import { closeAll, connect, setVisibility } from '../support/client.mjs';
import { ledgerPath, sql } from '../support/ledger.mjs';
import {
  acceptContact,
  befriend,
  block,
  expectRest,
  removeContact,
  requestContact,
  unblock,
  uniqueUsers,
} from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** The ledger's code for `nobody`. */
const NOBODY = 2;

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'] });
});
after(() => server.stop());
afterEach(closeAll);

const write = (statement) => sql(ledgerPath(server), statement);

const storeContact = (a, b, id) =>
  write(`INSERT INTO contacts VALUES ('${a}', '${b}', '${id}', 1), ('${b}', '${a}', '${id}', 1)`);

const deleteContact = (a, b) =>
  write(`DELETE FROM contacts WHERE user_id IN ('${a}', '${b}') AND contact_id IN ('${a}', '${b}')`);

/** Connects both users and subscribes the viewer to the target; returns the status the viewer sees. */
async function watch(target, viewer) {
  const targets = await connect(server, target);
  const viewers = await connect(server, viewer);
  const { presences } = await viewers.ask({ type: 'subscribe_presence', user_ids: [target] });
  return { targets, viewers, status: presences[0].status };
}

async function expectStatus(client, user, status) {
  const change = await client.next('presence_changed');
  assert.deepEqual([change.user_id, change.status], [user, status]);
}

test('a repeated block hides the user', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await setVisibility(server, alice, 'everyone');
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'online');
  await write(`INSERT INTO blocks VALUES ('${alice}', '${bob}', 1)`);
  await block(server, alice, bob);
  await expectStatus(viewers, alice, 'unknown');
});

test('a repeated unblock shows the user again', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await setVisibility(server, alice, 'everyone');
  await block(server, alice, bob);
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'unknown');
  await write(`DELETE FROM blocks WHERE user_id = '${alice}'`);
  await unblock(server, alice, bob);
  await expectStatus(viewers, alice, 'online');
});

test('a repeated removal of a contact hides the user', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'online');
  await deleteContact(alice, bob);
  await removeContact(server, alice, bob);
  await expectStatus(viewers, alice, 'unknown');
});

test('a repeated acceptance of a contact request shows the user', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'unknown');
  const { id } = await requestContact(server, bob, alice);
  await write(`DELETE FROM contact_requests WHERE request_id = '${id}'`);
  await storeContact(alice, bob, id);
  await acceptContact(server, alice, id);
  await expectStatus(viewers, alice, 'online');
});

test('a repeated contact request that crossed another shows the user', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'unknown');
  await storeContact(alice, bob, 'r');
  await expectRest(server, 200, 'POST', '/v1/contact-requests', alice, { to: bob });
  await expectStatus(viewers, alice, 'online');
});

test('a repeated change of the visibility setting hides the user', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await setVisibility(server, alice, 'everyone');
  const { viewers, status } = await watch(alice, bob);
  assert.equal(status, 'online');
  await write(`UPDATE users SET presence_visibility = ${NOBODY} WHERE user_id = '${alice}'`);
  await setVisibility(server, alice, 'nobody', 'everyone');
  await expectStatus(viewers, alice, 'unknown');
});

test('a repeated creation of a chat sends presence to its members', async () => {
  const [alice, bob, carol, chatId] = uniqueUsers('alice', 'bob', 'carol', 'chat');
  await befriend(server, alice, carol);
  await setVisibility(server, alice, 'everyone');
  const carols = await connect(server, carol);
  const { targets, viewers } = await watch(alice, bob);
  await expectStatus(carols, alice, 'online'); // so that her social graph is cached
  await viewers.ask({ type: 'unsubscribe_presence', user_ids: [alice] });
  await write(
    `INSERT INTO chats (chat_id, creator, created_at_ms, member_count)
       VALUES ('${chatId}', '${alice}', 1, 2);
     INSERT INTO chat_counters (chat_id, sequence) VALUES ('${chatId}', 0);
     INSERT INTO chat_members (chat_id, user_id, since_ms)
       VALUES ('${chatId}', '${alice}', 1), ('${chatId}', '${bob}', 1);`,
  );
  await expectRest(server, 200, 'POST', '/v1/chats', alice, { chat_id: chatId, members: [bob] });
  await viewers.ask({ type: 'open_chat', chat_id: chatId });
  targets.send({ type: 'heartbeat', active: false });
  await expectStatus(viewers, alice, 'away');
});

test('a repeated leave closes the open chat', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chatId = await newChat(server, alice, bob);
  const bobs = await connect(server, bob);
  await bobs.ask({ type: 'open_chat', chat_id: chatId });
  await write(`DELETE FROM chat_members WHERE chat_id = '${chatId}' AND user_id = '${bob}'`);
  await expectRest(server, 404, 'DELETE', `/v1/chats/${chatId}/members/${bob}`, bob);
  assert.equal((await bobs.next('chat_closed')).chat_id, chatId);
});

test('a repeated removal of a member closes the open chat', async () => {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  const chatId = await newChat(server, alice, bob);
  const bobs = await connect(server, bob);
  await bobs.ask({ type: 'open_chat', chat_id: chatId });
  await write(`DELETE FROM chat_members WHERE chat_id = '${chatId}' AND user_id = '${bob}'`);
  await expectRest(server, 204, 'DELETE', `/v1/chats/${chatId}/members/${bob}`, alice);
  assert.equal((await bobs.next('chat_closed')).chat_id, chatId);
});
