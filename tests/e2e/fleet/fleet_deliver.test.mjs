/**
 * What an application delivers without routes, with two gateways: by peer links it arrives while Redis is out of reach, and
 * right after Redis came back empty; without links it is refused.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { eventually, metric, rest } from '../support/client.mjs';
import { isReady, joinFleet, QUICK, startFleet } from '../support/fleet.mjs';
import { freePorts, startRedis } from '../support/redis.mjs';
import { rollcall } from '../support/server.mjs';

const NOTICED_MS = 30000; // time limit for noticing an outage or its end

/** Two gateways, on the first of which ann is connected, on the second ben with two devices. */
async function setUp(t, { linked = true } = {}) {
  const redis = await startRedis();
  const fleet = await startFleet({ redis, gateways: [], settings: QUICK });
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    await redis.stop();
  });
  const [closedPort] = await freePorts(1); // where nobody can dial
  const settings = linked ? {} : { 'peer.advertise': `127.0.0.1:${closedPort}` };
  for (const name of ['gw-001', 'gw-002']) await fleet.start(name, { settings });
  if (linked) await fleet.waitUntilLinked();
  const made = await rollcall('key', 'create', 'fleet', '--data-dir', fleet.dataDir, '--scope', 'service deliver');
  assert.equal(made.code, 0, made.stderr);
  const [one, two] = fleet.gateways;
  const ann = await joinFleet(one, 'ann');
  await eventually(async () => (await metric(one, 'gateway_instances_healthy')) === 2, 'the first gateway knows of the second');
  const bens = [await joinFleet(two, 'ben'), await joinFleet(two, 'ben')];
  clients.push(ann, ...bens);
  return { redis, one, two, ann, bens, key: made.stdout.trim() };
}

const deliverTo = (server, key, to, data) =>
  rest(server, 'POST', '/v1/service/deliver', { token: key, body: { to, event: 'e', data } });
const deliver = (server, key, user, data) =>
  rest(server, 'POST', `/v1/users/${user}/deliver`, { token: key, body: data });
const deliveries = (client) => client.record.filter(({ type }) => type === 'delivery').map(({ data }) => data);

/** Each client got each of these once, in any order, and nothing else. */
async function assertGot(clients, expected) {
  for (const client of clients) {
    await eventually(() => deliveries(client).length >= expected.length, `${expected} arrive`, NOTICED_MS);
    assert.deepEqual(deliveries(client).sort(), [...expected].sort());
  }
}

async function loseRedis({ redis, one, two }) {
  await redis.kill();
  for (const server of [one, two])
    await eventually(async () => !(await isReady(server)), 'the outage is noticed', NOTICED_MS);
}

describe('delivery without routes', { concurrency: 2 }, () => {
  test('goes to other gateways by peer links while Redis is out of reach', async (t) => {
    const world = await setUp(t);
    const { one, two, ann, bens, key } = world;
    await loseRedis(world);
    assert.deepEqual(await deliver(one, key, 'ben', 'far').then(({ status, body }) => [status, body]), [202, { devices: 1 }]);
    assert.deepEqual(await deliver(two, key, 'ben', 'near').then(({ status, body }) => [status, body]), [202, { devices: 2 }]);
    const both = await deliverTo(one, key, { users: ['ann', 'ben'] }, 'both');
    assert.deepEqual([both.status, both.body], [200, { accepted: 2 }]);
    const everyone = await deliverTo(two, key, { everyone: true }, 'all');
    assert.deepEqual([everyone.status, everyone.body], [200, { accepted: 1 }]); // whom that gateway holds
    await assertGot(bens, ['far', 'near', 'both', 'all']);
    await assertGot([ann], ['both', 'all']);
    assert.ok((await metric(one, 'fanout_broadcasts')) >= 2);
  });

  test('is refused without links, except to users of the same gateway', async (t) => {
    const world = await setUp(t, { linked: false });
    const { one, ann, bens, key } = world;
    await loseRedis(world);
    for (const refused of [
      await deliver(one, key, 'ben', 1),
      await deliverTo(one, key, { users: ['ann', 'ben'] }, 1),
      await deliverTo(one, key, { everyone: true }, 1),
    ]) {
      assert.equal(refused.status, 503);
      assert.ok(Number(refused.headers.get('retry-after')) > 0);
      assert.equal(refused.body.error.code, 'SERVICE_UNAVAILABLE');
    }
    assert.equal((await deliver(one, key, 'ann', 'here')).status, 202);
    await assertGot([ann], ['here']);
    for (const ben of bens) assert.deepEqual(deliveries(ben), []);
  });

  test('reaches users once whose gateway has not registered them again yet', async (t) => {
    const world = await setUp(t);
    const { redis, one, two, ann, bens, key } = world;
    const sent = [];
    for (let round = 0; round < 3; round += 1) {
      await loseRedis(world);
      await redis.start();
      await eventually(() => isReady(one), 'the gateway is ready again', NOTICED_MS);
      for (let n = 0; n < 5; n += 1) {
        const [name, all] = [`${round}.${n}`, `${round}.${n} all`];
        const { status } = await deliver(one, key, 'ben', name);
        assert.equal(status, 202);
        assert.equal((await deliverTo(one, key, { everyone: true }, all)).status, 200);
        sent.push(name, all);
      }
      await eventually(() => isReady(two), 'the other gateway is ready again', NOTICED_MS);
    }
    await assertGot(bens, sent);
    await assertGot([ann], sent.filter((name) => name.endsWith('all')));
  });
});
