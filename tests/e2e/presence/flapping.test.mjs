/** A user who flaps is pushed at most once per `presence.min_dwell_ms`, and the last state is always told. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, setVisibility } from '../support/client.mjs';
import { befriend } from '../support/contacts.mjs';
import { startServer } from '../support/server.mjs';

const DWELL_MS = 400;
const FLAPS = 60;

let server;

before(async () => {
  server = await startServer({ settings: { 'presence.min_dwell_ms': DWELL_MS } });
});
after(() => server.stop());
afterEach(closeAll);

const changesOf = (client, user) =>
  client.messages.filter(({ type, user_id }) => type === 'presence_changed' && user_id === user);

/** Toggles between away and online; each change that the store makes is one transition. */
async function flap(client) {
  for (let i = 0; i < FLAPS; i++) {
    client.send({ type: 'heartbeat', active: i % 2 === 1, id: `${i}` });
    await client.next(({ type, id }) => type === 'heartbeat_ack' && id === `${i}`);
  }
}

test('heartbeats that toggle idleness reach each viewer a few times only', async () => {
  await befriend(server, 'flapper', 'friend');
  await setVisibility(server, 'flapper', 'everyone');
  const friend = await connect(server, 'friend');
  const subscriber = await connect(server, 'subscriber');
  const flapper = await connect(server, 'flapper');
  await subscriber.subscribe('flapper');
  await friend.next(({ type, status }) => type === 'presence_changed' && status === 'online');
  const begin = Date.now();
  await flap(flapper);
  const periods = Math.ceil((Date.now() - begin) / DWELL_MS) + 1;
  await flapper.socket.close();
  for (const viewer of [friend, subscriber]) {
    const earlier = changesOf(viewer, 'flapper').length;
    const last = await viewer.next(
      ({ type, status }) => type === 'presence_changed' && status === 'offline',
    );
    assert.equal(last.user_id, 'flapper');
    assert.ok(earlier <= periods, `${earlier} pushes in ${periods} periods`);
  }
});

test('a single change is pushed at once, and one right behind it when the time is over', async () => {
  await setVisibility(server, 'calm', 'everyone');
  const viewer = await connect(server, 'viewer');
  await viewer.subscribe('calm');
  const calm = await connect(server, 'calm');
  const online = await viewer.next('presence_changed');
  assert.equal(online.status, 'online');
  calm.socket.close();
  const offline = await viewer.next('presence_changed');
  assert.equal(offline.status, 'offline');
  assert.ok(offline.version > online.version);
  const apart = Date.parse(offline.timestamp) - Date.parse(online.timestamp);
  assert.ok(apart >= DWELL_MS - 20, `pushed ${apart} ms apart`);
});
