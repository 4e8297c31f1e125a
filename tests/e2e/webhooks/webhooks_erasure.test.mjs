/** A message that is deleted, or whose sender is erased, loses its body also in the events that no endpoint has taken yet. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { makeChat, postMessage } from '../support/chats.mjs';
import { eventually, rest, sleep } from '../support/client.mjs';
import { NO_BUDGETS, rollcall, startServer } from '../support/server.mjs';
import { startEndpoint, writeSecret } from '../support/webhook_endpoint.mjs';

const READ_AGE_MAX_MS = 5000; // WEBHOOK_READ_AGE_MAX_MS

const isMessage = ({ type }) => type.startsWith('message.');

/** A server with an endpoint that refuses messages, and with a chat of alice, bob, and carol, who is never there. */
async function startRefused(settings = {}) {
  const endpoint = await startEndpoint({ answer: (events) => (events.some(isMessage) ? 503 : 200) });
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-webhooks-'));
  const server = await startServer({
    dataDir,
    settings: {
      ...NO_BUDGETS,
      'webhooks.endpoints': endpoint.url,
      'webhooks.secret_file': await writeSecret(),
      'webhooks.batch_ms': 50,
      ...settings,
    },
  });
  after(async () => {
    await server.stop('SIGKILL');
    await endpoint.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  const token = await server.token('backend', { scope: 'service' });
  const service = (method, path) => rest(server, method, `/v1/service${path}`, { token });
  await makeChat(server, 'team', 'alice', 'bob', 'carol');
  for (const [user, body] of [['alice', 'secret 1'], ['bob', 'secret 2'], ['bob', 'public'], ['alice', 'secret 4']])
    assert.equal((await postMessage(server, user, 'team', { client_message_id: body, body })).status, 201);
  return { dataDir, endpoint, server, service };
}

const EXPECTED = [[1, 'alice', undefined, true], [2, 'bob', undefined, true], [3, 'bob', 'public', undefined], [4, 'alice', undefined, true]];

/** What the events of a type say of their messages; ids and order are those of the first try. */
function checkTaken(endpoint, type, expected) {
  const events = endpoint.of(type);
  const tried = endpoint.requests.flatMap((request) => request.events);
  assert.deepEqual(events.map(({ data }) => [data.sequence, data.sender_id, data.body, data.deleted]), expected, type);
  for (const { id, data } of events)
    assert.equal(id, tried.find((event) => event.type === type && event.data.sequence === data.sequence).id);
}

test('waiting events of deleted messages and of an erased user are sent without bodies', async () => {
  const { endpoint, service } = await startRefused();
  const hasTried = (type) => endpoint.requests.some(({ events }) => events.some((event) => event.type === type));
  await eventually(() => hasTried('message.created') && hasTried('message.undelivered'), 'both types were refused');
  assert.equal((await service('DELETE', '/chats/team/messages/2')).status, 204);
  assert.equal((await service('DELETE', '/users/alice')).status, 204);
  await sleep(READ_AGE_MAX_MS + 100);
  const before = endpoint.requests.length;
  endpoint.answer = () => 200;
  await eventually(() => endpoint.events.filter(isMessage).length === 8, 'all events');
  checkTaken(endpoint, 'message.created', EXPECTED);
  checkTaken(endpoint, 'message.undelivered', EXPECTED);
  const sent = JSON.stringify(endpoint.requests.slice(before).map(({ events }) => events));
  assert.doesNotMatch(sent, /secret/);
});

test('dead letters that are replayed after an erasure have no bodies', async () => {
  const { dataDir, endpoint, service } = await startRefused({ 'webhooks.give_up_seconds': 2 });
  const list = async () => (await rollcall('webhooks', 'list', '--data-dir', dataDir)).stdout;
  await eventually(async () => (await list()).match(/message\.(created|undelivered)/g)?.length === 8, 'dead letters');
  assert.doesNotMatch(await list(), /secret|public/);
  assert.equal((await service('DELETE', '/chats/team/messages/2')).status, 204);
  assert.equal((await service('DELETE', '/users/alice')).status, 204);
  endpoint.answer = () => 200;
  assert.match((await rollcall('webhooks', 'replay', '--data-dir', dataDir)).stdout, /put back/);
  await eventually(() => endpoint.events.filter(isMessage).length === 8, 'all events');
  checkTaken(endpoint, 'message.created', EXPECTED);
  checkTaken(endpoint, 'message.undelivered', EXPECTED);
});
