/** Calls from ringing to the history, with several devices on both sides. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, eventually, metric, rest, setVisibility, sleep } from '../support/client.mjs';
import {
  befriend,
  block,
  expectRest,
  friends,
  removeContact,
  uniqueUsers,
} from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

/** Time in which an unexpected message would have arrived. */
const QUIET_MS = 150;
const RING_MS = 4000;
const GRACE_MS = 3000;

let server;
before(async () => {
  server = await startServer({
    args: ['--workers', '2'],
    settings: {
      'call.ring_timeout_seconds': RING_MS / 1000,
      'call.reconnect_grace_seconds': GRACE_MS / 1000,
      'presence.reap_interval_seconds': 0.1,
    },
  });
});
after(async () => assert.equal(await server.stop(), 0));
afterEach(closeAll);

const isAboutCalls = ({ type }) => type.startsWith('call_');

/** Waits a moment; returns the messages about calls that were not taken. */
async function untakenCallMessages(client) {
  await sleep(QUIET_MS);
  return (await client.settle()).filter(isAboutCalls);
}

async function expectSilence(...clients) {
  for (const client of clients) assert.deepEqual(await untakenCallMessages(client), []);
}

async function expectOk(client, message) {
  const answer = await client.ask(message);
  assert.equal(answer.type, 'ok', JSON.stringify(answer));
}

async function expectError(client, code, message, text = /./) {
  const answer = await client.ask(message);
  assert.equal(answer.type, 'error', JSON.stringify(answer));
  assert.equal(answer.code, code, JSON.stringify(answer));
  assert.match(answer.message, text);
  return answer;
}

async function expectEnded(client, callId, reason) {
  const ended = await client.next('call_ended');
  assert.deepEqual([ended.call_id, ended.reason], [callId, reason]);
}

/** Connects two contacts, alice with one device and bob with two. */
async function setUpPair() {
  const [alice, bob] = uniqueUsers('alice', 'bob');
  await befriend(server, alice, bob);
  const clients = {
    alice: await connect(server, alice, { device: 'phone' }),
    bob: await connect(server, bob, { device: 'phone' }),
    bobOther: await connect(server, bob, { device: 'desk' }),
  };
  for (const client of Object.values(clients)) {
    await client.settle();
    client.messages.length = 0;
  }
  return { ...clients, names: { alice, bob } };
}

/** Alice calls bob; returns the call's id while both devices of bob ring. */
async function ring(scene) {
  const ringing = await scene.alice.ask({ type: 'call_request', to: scene.names.bob });
  assert.equal(ringing.type, 'call_ringing', JSON.stringify(ringing));
  for (const device of [scene.bob, scene.bobOther]) {
    const incoming = await device.next('call_incoming');
    assert.deepEqual([incoming.call_id, incoming.from], [ringing.call_id, scene.names.alice]);
  }
  return ringing.call_id;
}

/** Alice calls bob, who accepts on his first device; returns the call's id. */
async function talk(scene) {
  const callId = await ring(scene);
  await expectOk(scene.bob, { type: 'call_accept', call_id: callId });
  for (const device of [scene.alice, scene.bobOther])
    assert.equal((await device.next('call_accepted')).call_id, callId);
  await expectEnded(scene.bobOther, callId, 'answered_elsewhere');
  return callId;
}

const inCall = async (viewer, user) => (await viewer.query(user))[0].in_call;

const history = async (user, query = '') =>
  (await expectRest(server, 200, 'GET', `/v1/calls${query}`, user)).calls;

/** Waits until the history has this many calls: it is written after the end of a call. */
const waitForHistory = (user, count) =>
  eventually(async () => {
    const found = await history(user);
    return found.length === count && found;
  }, `${count} calls in the history`);

test('every device of the callee rings until one answers, and friends see the call', async () => {
  const scene = await setUpPair();
  const { alice, bob } = scene.names;
  const [carol] = uniqueUsers('carol');
  await befriend(server, carol, bob);
  const watcher = await connect(server, carol);
  await watcher.settle();
  const callId = await talk(scene);
  assert.equal((await watcher.next((m) => m.type === 'presence_changed' && m.in_call)).user_id, bob);
  assert.deepEqual(
    (await friends(server, carol, '?in_call=true')).map(({ user_id: id }) => id),
    [bob],
  );
  assert.equal(await inCall(scene.bob, alice), true);
  await expectOk(scene.alice, { type: 'call_end', call_id: callId });
  await expectEnded(scene.bob, callId, 'hangup');
  await watcher.next((m) => m.type === 'presence_changed' && m.user_id === bob && !m.in_call);
  assert.equal(await inCall(scene.bob, alice), false);
  const [call] = await waitForHistory(bob, 1);
  assert.deepEqual(
    [call.call_id, call.peer, call.direction, call.reason],
    [callId, alice, 'incoming', 'hangup'],
  );
  assert.ok(call.started_at <= call.answered_at && call.answered_at <= call.ended_at);
  assert.equal(call.duration_seconds, 0);
  assert.equal((await waitForHistory(alice, 1))[0].direction, 'outgoing');
});

test('a call may be rejected, cancelled or not answered, and the history has the reason', async () => {
  const scene = await setUpPair();
  let callId = await ring(scene);
  await expectOk(scene.bobOther, { type: 'call_reject', call_id: callId });
  for (const device of [scene.alice, scene.bob]) {
    const { call_id: id, reason } = await device.next('call_rejected');
    assert.deepEqual([id, reason], [callId, 'rejected']);
  }
  await expectEnded(scene.bob, callId, 'rejected');

  callId = await ring(scene);
  await expectOk(scene.alice, { type: 'call_end', call_id: callId });
  for (const device of [scene.bob, scene.bobOther]) await expectEnded(device, callId, 'cancelled');

  callId = await ring(scene);
  for (const device of [scene.alice, scene.bob, scene.bobOther])
    await expectEnded(device, callId, 'timeout');
  await expectSilence(scene.alice, scene.bob, scene.bobOther);
  const reasons = (await waitForHistory(scene.names.bob, 3)).map(({ reason }) => reason);
  assert.deepEqual(reasons, ['timeout', 'cancelled', 'rejected']);
  assert.equal((await history(scene.names.bob, '?limit=1')).length, 1);
  const [unanswered] = await waitForHistory(scene.names.alice, 3);
  assert.deepEqual([unanswered.answered_at, unanswered.duration_seconds], [null, 0]);
});

test('every reason why a user cannot be called gives the same answer, byte for byte', async () => {
  const [alice, unrelated, blocker, removed, offline] = uniqueUsers('alice', 'u', 'b', 'r', 'o');
  for (const friend of [blocker, removed, offline]) await befriend(server, alice, friend);
  await block(server, blocker, alice);
  await removeContact(server, removed, alice);
  const devices = [];
  for (const user of [unrelated, blocker, removed]) devices.push(await connect(server, user));
  const caller = await connect(server, alice);
  const answers = [];
  for (const to of [unrelated, blocker, removed, offline, 'nobody at all', alice]) {
    caller.send({ type: 'call_request', to });
    answers.push(JSON.stringify(await caller.next('error')));
  }
  assert.equal(JSON.parse(answers[0]).code, 'CALL_UNAVAILABLE');
  assert.equal(new Set(answers).size, 1, answers.join('\n'));
  await expectSilence(...devices);
});

test('a callee who shows presence to nobody rings until the timeout, whatever they do', async () => {
  const scene = await setUpPair();
  const { bob } = scene.names;
  await setVisibility(server, bob, 'nobody');
  await talk(scene);
  const [carol, offline, leaver] = uniqueUsers('carol', 'offline', 'leaver');
  for (const callee of [bob, offline, leaver]) await befriend(server, carol, callee);
  for (const callee of [offline, leaver]) await setVisibility(server, callee, 'nobody');
  const caller = await connect(server, carol);
  const leaving = await connect(server, leaver);
  for (const to of [bob, offline, leaver]) {
    const ringing = await caller.ask({ type: 'call_request', to });
    assert.equal(ringing.type, 'call_ringing', JSON.stringify(ringing));
    if (to === leaver) leaving.socket.close();
    await expectOk(caller, { type: 'call_signal', call_id: ringing.call_id, data: { ice: 1 } });
    await expectEnded(caller, ringing.call_id, 'timeout');
  }
  await expectSilence(scene.bob, scene.bobOther);
  const reasons = (await waitForHistory(carol, 3)).map(({ reason }) => reason);
  assert.deepEqual(reasons, ['timeout', 'timeout', 'timeout']);
  assert.equal((await waitForHistory(offline, 1))[0].direction, 'incoming');
});

test('a user in a call is busy in both directions, and the calls of others are not found', async () => {
  const scene = await setUpPair();
  const { alice, bob } = scene.names;
  const [carol] = uniqueUsers('carol');
  await befriend(server, carol, bob);
  await befriend(server, carol, alice);
  const third = await connect(server, carol);
  const callId = await talk(scene);
  await expectError(third, 'CALL_BUSY', { type: 'call_request', to: bob });
  await expectError(scene.alice, 'CALL_BUSY', { type: 'call_request', to: carol });
  for (const type of ['call_accept', 'call_reject', 'call_end', 'call_signal']) {
    const known = await expectError(third, 'NOT_FOUND', { type, call_id: callId, data: 1 });
    const unknown = await expectError(third, 'NOT_FOUND', { type, call_id: 'none', data: 1 });
    assert.equal(known.message, unknown.message);
  }
  assert.equal((await waitForHistory(carol, 1))[0].reason, 'busy');
  await expectSilence(scene.alice, scene.bob, scene.bobOther);
  assert.equal(await inCall(scene.bob, alice), true);
});

test('a command in the wrong state names the state, and an invalid message is refused', async () => {
  const scene = await setUpPair();
  const callId = await ring(scene);
  const accept = { type: 'call_accept', call_id: callId };
  await expectError(scene.alice, 'FORBIDDEN', accept, /ringing/);
  await expectOk(scene.bob, accept);
  await expectError(scene.bobOther, 'CALL_UNAVAILABLE', accept, /accepted/);
  await expectOk(scene.bob, { type: 'call_end', call_id: callId });
  for (const type of ['call_accept', 'call_reject', 'call_end', 'call_signal'])
    await expectError(
      scene.alice,
      'CALL_UNAVAILABLE',
      { type, call_id: callId, data: 1 },
      /ended/,
    );
  await expectError(scene.alice, 'INVALID_MESSAGE', { type: 'call_request' });
  await expectError(scene.alice, 'INVALID_MESSAGE', { type: 'call_accept' });
  await expectError(scene.alice, 'INVALID_MESSAGE', { type: 'call_end', call_id: 'x'.repeat(129) });
  await expectError(scene.alice, 'INVALID_MESSAGE', { type: 'call_signal', call_id: callId });
});

test('the caller may choose the call’s id, which is used once', async () => {
  const scene = await setUpPair();
  const request = { type: 'call_request', to: scene.names.bob, call_id: 'my "own" id' };
  for (let i = 0; i < 2; i += 1) {
    const ringing = await scene.alice.ask(request);
    assert.deepEqual([ringing.type, ringing.call_id], ['call_ringing', request.call_id]);
  }
  await scene.bob.next('call_incoming');
  await expectSilence(scene.bob);
  await expectOk(scene.alice, { type: 'call_end', call_id: request.call_id });
  await expectError(scene.alice, 'INVALID_MESSAGE', request);
});

test('signals of up to 32 KB pass unchanged between the two devices in the call', async () => {
  const scene = await setUpPair();
  const { alice } = scene.names;
  const callId = await ring(scene);
  const signal = (data) => ({ type: 'call_signal', call_id: callId, data });
  await expectOk(scene.alice, signal({ sdp: 'offer', deep: [1, null, { emoji: '☎️' }] }));
  for (const device of [scene.bob, scene.bobOther])
    assert.deepEqual(await device.next('call_signal'), {
      type: 'call_signal',
      call_id: callId,
      from: alice,
      data: { sdp: 'offer', deep: [1, null, { emoji: '☎️' }] },
    });
  scene.bob.send(signal('early'));
  assert.equal((await scene.alice.next('call_signal')).from, scene.names.bob);
  await expectOk(scene.bob, { type: 'call_accept', call_id: callId });
  for (const device of [scene.alice, scene.bobOther]) await device.next('call_accepted');
  const large = 'x'.repeat(32 * 1024);
  scene.alice.send(signal(large));
  assert.equal((await scene.bob.next('call_signal')).data, large);
  await expectError(scene.alice, 'MESSAGE_TOO_LARGE', signal(`${large}x`));
  await expectError(scene.bobOther, 'CALL_UNAVAILABLE', signal('from the other device'));
  await expectEnded(scene.bobOther, callId, 'answered_elsewhere');
  await expectSilence(scene.bobOther);
});

test('two users who call each other get one call', async () => {
  const scene = await setUpPair();
  const { alice, bob } = scene.names;
  for (let round = 0; round < 10; round += 1) {
    const [ofAlice, ofBob] = await Promise.all([
      scene.alice.ask({ type: 'call_request', to: bob, call_id: `a-${alice}-${round}` }),
      scene.bob.ask({ type: 'call_request', to: alice, call_id: `b-${bob}-${round}` }),
    ]);
    assert.deepEqual([ofAlice.type, ofBob.type], ['call_ringing', 'call_ringing']);
    assert.equal(ofAlice.call_id, ofBob.call_id);
    const accepted = [await scene.alice.next('call_accepted'), await scene.bob.next('call_accepted')];
    for (const { call_id: id } of accepted) assert.equal(id, ofAlice.call_id);
    assert.equal(accepted[0].from, accepted[1].from, 'both get the same caller');
    await expectOk(scene.alice, { type: 'call_end', call_id: ofAlice.call_id });
    await expectEnded(scene.bob, ofAlice.call_id, 'hangup');
    await eventually(async () => !(await inCall(scene.bob, alice)), 'the user is out of the call');
  }
});

test('a device that reconnects within the grace period is still in the call', async () => {
  const scene = await setUpPair();
  const callId = await talk(scene);
  scene.bob.terminate();
  await sleep(GRACE_MS / 10);
  const back = await connect(server, scene.names.bob, { device: 'phone' });
  assert.equal((await back.next('call_accepted')).call_id, callId);
  await sleep(GRACE_MS * 1.5);
  await expectSilence(scene.alice);
  scene.alice.send({ type: 'call_signal', call_id: callId, data: 'still there?' });
  assert.equal((await back.next('call_signal')).data, 'still there?');
  assert.equal(await inCall(scene.alice, scene.names.bob), true);
  back.terminate();
  await expectEnded(scene.alice, callId, 'disconnected');
  await eventually(async () => !(await inCall(scene.alice, scene.names.bob)), 'the user is out of the call');
  const late = await connect(server, scene.names.bob, { device: 'phone' });
  await expectSilence(late);
});

test('a device that connects while a call rings rings too, and all stop when the caller disconnects', async () => {
  const scene = await setUpPair();
  const callId = await ring(scene);
  const third = await connect(server, scene.names.bob, { device: 'tablet' });
  assert.equal((await third.next('call_incoming')).call_id, callId);
  scene.alice.terminate();
  for (const device of [scene.bob, scene.bobOther, third])
    await expectEnded(device, callId, 'disconnected');
});

test('blocking or removing a contact ends the call with that user', async () => {
  for (const endContact of [block, removeContact]) {
    const scene = await setUpPair();
    const callId = await talk(scene);
    await endContact(server, scene.names.bob, scene.names.alice);
    for (const device of [scene.alice, scene.bob]) await expectEnded(device, callId, 'hangup');
    const unavailable = await expectError(scene.alice, 'CALL_UNAVAILABLE', {
      type: 'call_request',
      to: scene.names.bob,
    });
    assert.match(unavailable.message, /cannot be called/);
  }
});

test('the history needs a token and a valid limit', async () => {
  assert.equal((await rest(server, 'GET', '/v1/calls')).status, 401);
  for (const limit of ['0', '-1', 'x', '1001'])
    assert.equal(
      (await rest(server, 'GET', `/v1/calls?limit=${limit}`, { user: 'someone' })).status,
      400,
      limit,
    );
  assert.deepEqual(await history('someone'), []);
});

test('metrics count calls, and no call is left active', async () => {
  await eventually(async () => (await metric(server, 'calls_active')) === 0, 'no call is active');
  for (const name of ['started', 'answered', 'ended_hangup', 'ended_timeout', 'ended_disconnected'])
    assert.ok((await metric(server, `calls_${name}`)) > 0, name);
});
