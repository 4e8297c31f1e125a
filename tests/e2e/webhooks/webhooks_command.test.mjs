/** Events that no endpoint took become dead letters; `rollcall webhooks` lists and replays them, with and without a running server. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat, postMessage } from '../support/chats.mjs';
import { eventually, metric } from '../support/client.mjs';
import { rollcall, startServer } from '../support/server.mjs';
import { startEndpoint, writeSecret } from '../support/webhook_endpoint.mjs';

const linesOf = ({ stdout }) => stdout.split('\n').filter(Boolean).map((line) => line.split('\t'));

test('what was given up is listed and replayed, by id and as a whole', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-webhooks-'));
  const endpoint = await startEndpoint({ answer: () => 503 });
  const settings = {
    ...AMPLE_RATES,
    'webhooks.endpoints': endpoint.url,
    'webhooks.secret_file': await writeSecret(),
    'webhooks.batch_ms': 50,
    'webhooks.give_up_seconds': 2,
  };
  let server = await startServer({ settings, dataDir });
  after(async () => {
    await server.stop('SIGKILL');
    await endpoint.stop();
    await rm(dataDir, { recursive: true, force: true });
  });
  await makeChat(server, 'team', 'alice', 'bob');
  for (const text of ['one', 'two', 'three']) {
    const { status } = await postMessage(server, 'alice', 'team', { client_message_id: text, body: text });
    assert.equal(status, 201);
  }
  const list = (...args) => rollcall('webhooks', ...args, '--data-dir', dataDir);
  const isMessage = ([, , type]) => type === 'message.created';
  await eventually(async () => linesOf(await list()).filter(isMessage).length === 3, 'dead letters');
  assert.ok((await metric(server, 'webhooks_dead')) >= 4);
  const letters = linesOf(await list('list'));
  const [[id, time, , queue, reason]] = letters.filter(isMessage);
  assert.match(id, /^evt_[0-9a-f]{32}$/);
  assert.match(time, /^\d{4}-\d\d-\d\dT/);
  assert.match(queue, /^[0-9a-f]{16}$/);
  assert.match(reason, /give_up_seconds/);
  const [[chatId]] = letters.filter(([, , type]) => type === 'chat.created');
  assert.ok(endpoint.requests.some(({ events }) => events.some((event) => event.id === chatId)), 'the id that the endpoint has seen');

  endpoint.answer = () => 200;
  assert.equal((await list('replay', id)).stdout, '1 put back\n');
  await eventually(() => endpoint.events.length === 1, 'the replayed event');
  assert.equal(endpoint.events[0].id, id);
  assert.equal(endpoint.events[0].data.body, 'one');
  const missing = await list('replay', 'evt_00000000000000000000000000000000');
  assert.equal(missing.code, 1);
  assert.match(missing.stderr, /no dead letter/);

  await server.stop();
  assert.equal(linesOf(await rollcall('webhooks', 'list', '--ledger', `sqlite:${join(dataDir, 'ledger.db')}`)).filter(isMessage).length, 2);
  assert.match((await list('replay')).stdout, /^\d+ put back\n$/);
  assert.deepEqual(linesOf(await list()), []);
  server = await startServer({ settings, dataDir });
  const bodies = () => endpoint.of('message.created').map(({ data }) => data.body);
  await eventually(() => bodies().length === 3, 'the others');
  assert.deepEqual(bodies(), ['one', 'two', 'three']);
  assert.deepEqual(endpoint.problems, []);
});

test('wrong arguments are refused with the usage', async () => {
  const refused = await rollcall('webhooks', 'drop');
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /usage: rollcall webhooks/);
  assert.match((await rollcall('webhooks', '--help')).stdout, /replay \[ID…\]/);
});
