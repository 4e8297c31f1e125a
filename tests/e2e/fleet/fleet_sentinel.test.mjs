/**
 * Gateways that find Redis through sentinels: the master fails or is demoted while users are online, the sentinels are
 * down at the start, or do not know the name of the master.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { connect, eventually, setVisibility, sleep } from '../support/client.mjs';
import { assertInvariants, isReady, joinFleet, QUICK, QUICK_WINDOW_MS, sendUntilAcked, startFleet } from '../support/fleet.mjs';
import { startSentinelRedis } from '../support/sentinel.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const NOTICED_MS = 60000;
/** After a fault is over, everybody is told the truth within a window and this time. */
const TRUTH_MS = QUICK_WINDOW_MS + 5000;
const TEST_MS = 600000;

const FAULTS = {
  'killed': async (redis) => (await redis.master()).kill(),
  'demoted, without being killed': async (redis) =>
    eventually(
      () => redis.sentinels[0].command('SENTINEL', 'FAILOVER', 'main').then(() => true, () => false),
      'the failover begins',
      NOTICED_MS,
    ),
};

/** alice on one gateway, bob on the other; bob watches alice and carol. */
async function setUp(t) {
  const redis = await startSentinelRedis();
  const fleet = await startFleet({ redis, settings: QUICK });
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    await redis.stop();
  });
  const [one, two] = fleet.gateways;
  for (const user of ['alice', 'bob', 'carol']) await setVisibility(one, user, 'everyone');
  const alice = await joinFleet(one, 'alice');
  const bob = await joinFleet(two, 'bob');
  const carol = await joinFleet(one, 'carol');
  clients.push(alice, bob, carol);
  await bob.subscribe('alice', 'carol');
  await makeChat(one, 'talk', 'alice', 'bob');
  return { redis, fleet, one, two, alice, bob, carol, clients };
}

for (const [name, inject] of Object.entries(FAULTS)) {
  test(`the master is ${name}: nobody is told anything false, and all goes on`, { timeout: TEST_MS }, async (t) => {
    const { redis, fleet, two, alice, bob, carol, clients } = await setUp(t);
    const old = await redis.master();
    await sendUntilAcked(alice, 'talk', 'before');
    await inject(redis);
    await sendUntilAcked(alice, 'talk', 'during');
    const hasMoved = async () => ![undefined, old].includes(await redis.master());
    await eventually(hasMoved, 'there is another master', NOTICED_MS);
    for (const server of fleet.gateways) await eventually(() => isReady(server), 'the gateway is ready again', NOTICED_MS);
    const registered = async () => (await redis.command('SMEMBERS', 'user_servers:alice')).join() === 'gw-001';
    await eventually(registered, 'alice is registered at the new master', NOTICED_MS);
    await sendUntilAcked(alice, 'talk', 'after');
    await eventually(() => bob.bodies().includes('after'), 'the message arrives');
    await sleep(TRUTH_MS);
    assert.deepEqual(bob.changes(), [], 'nobody was told offline');
    for (const { socket } of clients) assert.equal(socket.readyState, 1, 'no client was disconnected');
    assert.deepEqual(new Set(bob.bodies()), new Set(['before', 'during', 'after']));
    assert.equal(bob.bodies().length, 3, 'no message comes twice');

    carol.terminate();
    await eventually(
      () => bob.changes().some(({ user_id: user, status }) => user === 'carol' && status === 'offline'),
      'a real offline is told through the new master',
      TRUTH_MS + NOTICED_MS,
    );
    clients.push(await connect(two, 'dave'));
    await assertInvariants(redis, QUICK_WINDOW_MS);
  });
}

test('without sentinels a gateway waits and says so, and is ready once they are up', { timeout: TEST_MS }, async (t) => {
  const redis = await startSentinelRedis({ sentinels: false });
  const fleet = await startFleet({ redis, gateways: [], settings: QUICK });
  t.after(async () => {
    await fleet.stop();
    await redis.stop();
  });
  const server = await fleet.start('gw-001', { ready: false });
  await eventually(() => server.log().includes('problem=sentinels_silent'), 'it says that it waits', NOTICED_MS);
  assert.equal(await isReady(server), false);
  await redis.startSentinels();
  await eventually(() => isReady(server), 'it is ready', NOTICED_MS);
});

const check = (state) =>
  new Promise((done) => {
    execFile(ROLLCALL_BIN, ['check', '--state', state], (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }));
  });

test('a wrong name of the master is a clear error', { timeout: TEST_MS }, async (t) => {
  const redis = await startSentinelRedis();
  const fleet = await startFleet({ redis, gateways: [], settings: QUICK });
  t.after(async () => {
    await fleet.stop();
    await redis.stop();
  });
  const server = await fleet.start('gw-001', { ready: false, state: redis.urlOf('other') });
  await eventually(() => server.log().includes('problem=master_unknown'), 'the log names the problem', NOTICED_MS);
  assert.match(server.log(), /master=other/);
  assert.equal(await isReady(server), false);
  const { code, stderr } = await check(redis.urlOf('other'));
  assert.equal(code, 2);
  assert.match(stderr, /the sentinels know no master of this name/);
  assert.equal((await check(redis.url)).code, 0);
});
