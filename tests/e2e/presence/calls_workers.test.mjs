/** Calls between devices on different workers. This file also runs under ThreadSanitizer. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, metric, nested } from '../support/client.mjs';
import { befriend, uniqueUsers } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const WORKERS = 3;
const TRIES_MAX = 60;
const ROUNDS = 20;

let server;
before(async () => {
  server = await startServer({
    args: ['--workers', String(WORKERS)],
    settings: {
      'call.reconnect_grace_seconds': 0.3,
      'presence.reap_interval_seconds': 0.1,
      'gateway.backpressure.inbound.command_rate_burst': 1000,
    },
  });
});
after(async () => assert.equal(await server.stop(), 0));
afterEach(closeAll);

/** Connects one device of a user to each worker. */
async function connectToEachWorker(user) {
  const token = await server.token(user);
  const found = new Map();
  for (let tries = 0; tries < TRIES_MAX && found.size < WORKERS; tries += 1) {
    const client = await connect(server, user, { token, device: `device-${tries}` });
    const worker = client.established.server_id;
    if (found.has(worker)) client.terminate();
    else found.set(worker, client);
  }
  assert.equal(found.size, WORKERS, 'a device on each worker');
  return [...found.values()];
}

/** Connects two contacts, each with a device on every worker. */
async function setUpPair() {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const devices = { alice: await connectToEachWorker(alice), bob: await connectToEachWorker(bob) };
  for (const client of Object.values(devices).flat()) await client.settle();
  return { alice, bob, devices };
}

const isCallEnd = (id) => (message) => message.type === 'call_ended' && message.call_id === id;

test('when devices on all workers accept at once, exactly one wins', async () => {
  const { bob, devices } = await setUpPair();
  for (let round = 0; round < ROUNDS; round += 1) {
    const caller = devices.alice[round % WORKERS];
    const { call_id: id } = await caller.ask({ type: 'call_request', to: bob });
    for (const device of devices.bob) assert.equal((await device.next('call_incoming')).call_id, id);
    const answers = await Promise.all(
      devices.bob.map((device) => device.ask({ type: 'call_accept', call_id: id })),
    );
    const accepted = answers.filter(({ type }) => type === 'ok');
    assert.equal(accepted.length, 1, JSON.stringify(answers));
    assert.equal((await caller.next('call_accepted')).call_id, id);
    const losers = devices.bob.filter((_, i) => answers[i].type !== 'ok');
    for (const loser of losers) assert.equal((await loser.next(isCallEnd(id))).reason, 'answered_elsewhere');
    const winner = devices.bob.find((_, i) => answers[i].type === 'ok');
    caller.send({ type: 'call_signal', call_id: id, data: round });
    assert.equal((await winner.next('call_signal')).data, round);
    await winner.ask({ type: 'call_end', call_id: id });
    assert.equal((await caller.next(isCallEnd(id))).reason, 'hangup');
    for (const device of [...devices.alice, ...devices.bob]) {
      await device.settle();
      device.messages.length = 0;
    }
  }
});

test('a signal reaches every worker up to the nesting limit, and is refused beyond it', async () => {
  const { bob, devices } = await setUpPair();
  const [caller] = devices.alice;
  const { call_id: id } = await caller.ask({ type: 'call_request', to: bob });
  for (const data of [nested(1), nested(30)]) {
    caller.send({ type: 'call_signal', call_id: id, data });
    for (const device of devices.bob)
      assert.deepEqual((await device.next('call_signal')).data, data);
  }
  const refused = await caller.ask({ type: 'call_signal', call_id: id, data: nested(31) });
  assert.deepEqual([refused.type, refused.code], ['error', 'INVALID_MESSAGE']);
  assert.match(refused.message, /data is .*nested too deep/);
  caller.send({ type: 'call_end', call_id: id });
  for (const device of devices.bob) await device.next(isCallEnd(id));
});

test('call requests that cross between workers become one call', async () => {
  const { alice, bob, devices } = await setUpPair();
  for (let round = 0; round < ROUNDS; round += 1) {
    const [left, right] = [devices.alice[round % WORKERS], devices.bob[(round + 1) % WORKERS]];
    const [a, b] = await Promise.all([
      left.ask({ type: 'call_request', to: bob }),
      right.ask({ type: 'call_request', to: alice }),
    ]);
    assert.deepEqual([a.type, b.type], ['call_ringing', 'call_ringing']);
    assert.equal(a.call_id, b.call_id);
    await left.next('call_accepted');
    await right.next('call_accepted');
    await left.ask({ type: 'call_end', call_id: a.call_id });
    await right.next(isCallEnd(a.call_id));
  }
});

test('nobody stays in a call when accept, hang-up and disconnect race', async () => {
  const { alice, bob, devices } = await setUpPair();
  for (let round = 0; round < ROUNDS; round += 1) {
    const caller = devices.alice[round % WORKERS];
    const answer = await caller.ask({ type: 'call_request', to: bob });
    assert.equal(answer.type, 'call_ringing', JSON.stringify(answer));
    const id = answer.call_id;
    await Promise.all([
      ...devices.bob.map((device) => device.ask({ type: 'call_accept', call_id: id })),
      devices.alice[(round + 1) % WORKERS].ask({ type: 'call_end', call_id: id }),
      devices.bob[(round + 2) % WORKERS].ask({ type: 'call_end', call_id: id }),
    ]);
  }
  const answer = await devices.alice[0].ask({ type: 'call_request', to: bob, call_id: `last-${bob}` });
  await devices.bob[0].ask({ type: 'call_accept', call_id: answer.call_id });
  for (const client of [devices.alice[0], devices.bob[0]]) client.terminate();
  const watcher = devices.alice[1];
  await eventually(async () => {
    const [ofBob, ofAlice] = await watcher.query(bob, alice);
    return !ofBob.in_call && !ofAlice.in_call && (await metric(server, 'calls_active')) === 0;
  }, 'no user is in a call');
});
