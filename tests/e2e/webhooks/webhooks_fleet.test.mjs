/** Two gateways on one ledger: one of them sends; when it is killed, the other goes on. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AMPLE_RATES, makeChat, postMessage } from '../support/chats.mjs';
import { eventually } from '../support/client.mjs';
import { makeLedger, PEER_SECRET } from '../support/ledger_server.mjs';
import { startServer } from '../support/server.mjs';
import { startEndpoint, writeSecret } from '../support/webhook_endpoint.mjs';

test('each event is sent by one process, and by another one when that is killed', async () => {
  const endpoint = await startEndpoint();
  const ledger = await makeLedger();
  await ledger.start();
  const secret = await writeSecret();
  const start = (node) =>
    startServer({
      args: ['--ledger', ledger.url, '--node-id', node, '--workers', '1'],
      settings: {
        ...AMPLE_RATES,
        'peer.secret': PEER_SECRET,
        'webhooks.url': endpoint.url,
        'webhooks.secret_file': secret,
        'webhooks.batch_ms': 50,
      },
    });
  const gateways = { 'gw-1': await start('gw-1'), 'gw-2': await start('gw-2') };
  after(async () => {
    await Promise.all(Object.values(gateways).map((gateway) => gateway.stop('SIGKILL')));
    await ledger.stop('SIGKILL');
    await endpoint.stop();
  });
  const isSender = (gateway) => /event=webhook_queue queue=[0-9a-f]{16} held=true/.test(gateway.log());
  await eventually(() => Object.values(gateways).some(isSender), 'a sender');
  const [sender, other] = isSender(gateways['gw-1']) ? ['gw-1', 'gw-2'] : ['gw-2', 'gw-1'];

  await makeChat(gateways[sender], 'team', 'alice', 'bob');
  const post = async (gateway, n) => {
    const { status } = await postMessage(gateway, 'alice', 'team', { client_message_id: `m${n}`, body: `text ${n}` });
    assert.equal(status, 201);
  };
  for (let n = 1; n <= 30; n++) await post(gateways[n % 2 ? sender : other], n);
  const sequences = () => endpoint.of('message.created').map(({ data }) => data.sequence);
  await eventually(() => sequences().length >= 30, 'the first events');
  assert.deepEqual(sequences(), Array.from({ length: 30 }, (_, n) => n + 1));
  assert.ok(!isSender(gateways[other]));

  const killedMs = Date.now();
  await gateways[sender].stop('SIGKILL');
  for (let n = 31; n <= 60; n++) await post(gateways[other], n);
  await eventually(() => sequences().includes(60), 'the events after the kill');
  console.log(`another process went on after ${Date.now() - killedMs} ms`);
  assert.deepEqual([...new Set(sequences())], Array.from({ length: 60 }, (_, n) => n + 1));
  assert.deepEqual(endpoint.problems, []);
});
