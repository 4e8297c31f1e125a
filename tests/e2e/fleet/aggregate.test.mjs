/** Gateways that reach Redis through aggregators, which are killed, paused, added and removed, on both kinds of Redis. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { makeAggregator } from '../support/aggregator.mjs';
import { makeChat } from '../support/chats.mjs';
import { closeAll, eventually, metric, setVisibility, sleep } from '../support/client.mjs';
import {
  assertInvariants,
  BACKENDS,
  isReady,
  joinFleet,
  QUICK,
  QUICK_WINDOW_MS,
  REALTIME,
  REALTIME_WINDOW_MS,
  sendUntilAcked,
  startFleet,
} from '../support/fleet.mjs';
import { rollcall } from '../support/server.mjs';

const LATE_MS = 5000; // a fault may be told this long after the window
const USERS = 12; // enough that every aggregator has some of them

/** Two gateways behind aggregators, of which the first `running` run; three have an address. */
function behindAggregators(start, settings, running) {
  const behind = {
    usesAll: (count) =>
      eventually(
        async () => (await Promise.all([behind.one, behind.two].map((server) => metric(server, 'aggregators_usable')))).every((number) => number === count),
        `the gateways use ${count} aggregators`,
      ),

    /** Connects users to one gateway and an observer of them to the other. */
    async watch(name) {
      const users = Array.from({ length: USERS }, (_, n) => `${name}-${n}`);
      for (const user of users) await setVisibility(behind.two, user, 'everyone');
      const observer = await joinFleet(behind.two, `observer-of-${name}`);
      await observer.subscribe(...users);
      const clients = await Promise.all(users.map((user) => joinFleet(behind.one, user)));
      for (const user of users) await observer.nextChange(user, 'online');
      return { users, clients, observer };
    },

    /** The observer has heard of each user only that they came online. */
    assertOnlyOnline: ({ users, observer }) => assert.deepEqual(changesOf(observer), Object.fromEntries(users.map((user) => [user, ['online']]))),

    /** All users leave; the observer hears it of each, once. */
    async expectAllLeave({ users, clients, observer }) {
      for (const client of clients) client.socket.close();
      for (const user of users) await observer.nextChange(user, 'offline');
      assert.deepEqual(changesOf(observer), Object.fromEntries(users.map((user) => [user, ['online', 'offline']])));
    },
  };
  before(async () => {
    behind.redis = await start();
    behind.aggregators = await Promise.all([1, 2, 3].map((n) => makeAggregator(behind.redis, { ...settings, 'gateway.node_id': `agg-${n}` })));
    await Promise.all(behind.aggregators.slice(0, running).map((aggregator) => aggregator.start()));
    const addresses = behind.aggregators.map(({ address }) => address);
    behind.fleet = await startFleet({ redis: behind.redis, settings, aggregators: addresses });
    [behind.one, behind.two] = behind.fleet.gateways;
    await behind.usesAll(running);
  });
  after(async () => {
    closeAll();
    await behind.fleet?.stop();
    for (const aggregator of behind.aggregators ?? []) await aggregator.stop();
    await behind.redis?.stop();
  });
  return behind;
}

/** What the observer was told about each user. */
function changesOf(observer) {
  const byUser = {};
  for (const { user_id: user, status } of observer.changes()) (byUser[user] ??= []).push(status);
  return byUser;
}

for (const [kind, { start }] of Object.entries(BACKENDS))
  describe(`gateways behind aggregators on ${kind}`, () => {
    const behind = behindAggregators(start, QUICK, 2);
    const { usesAll, watch, expectAllLeave, assertOnlyOnline } = behind;
    test('presence passes from one gateway to the other, and no gateway is connected to Redis', async () => {
      const watched = await watch('plain');
      await sleep(2 * QUICK_WINDOW_MS); // several renewals
      await expectAllLeave(watched);
      assert.doesNotMatch(await behind.redis.command('CLIENT', 'LIST'), /name=gw-/);
      assert.equal((await rollcall('check', '--state', behind.redis.url, '--window', '3')).code, 0);
    });

    test('messages and typing reach members on the other gateway', async () => {
      const ann = await joinFleet(behind.one, 'ann');
      const bob = await joinFleet(behind.two, 'bob');
      const chat = 'aggregated';
      await makeChat(behind.one, chat, 'ann', 'bob');
      for (const client of [ann, bob]) await client.ask({ type: 'open_chat', chat_id: chat });
      await sendUntilAcked(ann, chat, 'hello');
      await bob.next(({ type, body }) => type === 'message' && body === 'hello');
      ann.send({ type: 'typing_start', chat_id: chat });
      await bob.next(({ type, user_id: user }) => type === 'typing_changed' && user === 'ann');
    });

    test('users of a killed gateway go offline once, in time', async () => {
      const doomed = await behind.fleet.start('gw-doomed');
      for (const user of ['doomed-1', 'doomed-2']) await setVisibility(behind.one, user, 'everyone');
      const observer = await joinFleet(behind.two, 'observer-of-doomed');
      await observer.subscribe('doomed-1', 'doomed-2');
      for (const user of ['doomed-1', 'doomed-2']) {
        await joinFleet(doomed, user);
        await observer.nextChange(user, 'online');
      }
      await behind.fleet.crash(doomed);
      for (const user of ['doomed-1', 'doomed-2']) await observer.nextChange(user, 'offline', QUICK_WINDOW_MS + 2 * LATE_MS);
    });

    test('a killed aggregator takes nobody offline; its users go to the others, and back', async () => {
      const watched = await watch('killed');
      await behind.aggregators[0].stop('SIGKILL');
      await usesAll(1);
      const late = await joinFleet(behind.one, 'killed-late');
      assert.equal(late.record.some(({ type }) => type === 'error'), false);
      await sleep(QUICK_WINDOW_MS + 1000);
      assertOnlyOnline(watched);
      await behind.aggregators[0].start();
      await usesAll(2);
      await sleep(QUICK_WINDOW_MS);
      await expectAllLeave(watched);
    });

    test('an aggregator that is added, and one that is removed, disturb nobody', async () => {
      const watched = await watch('changed');
      await behind.aggregators[2].start();
      await usesAll(3);
      await sleep(1000);
      assert.equal(await behind.aggregators[0].stop('SIGTERM'), 0);
      await usesAll(2);
      await sleep(QUICK_WINDOW_MS + 1000);
      assertOnlyOnline(watched);
      await expectAllLeave(watched);
      await behind.aggregators[0].start();
      await usesAll(3);
    });

    test('without any aggregator gateways are not ready, keep their connections, and recover', async () => {
      const watched = await watch('without');
      for (const aggregator of behind.aggregators) await aggregator.stop('SIGKILL');
      await eventually(async () => !(await isReady(behind.one)), 'not ready');
      await sleep(QUICK_WINDOW_MS + 1000);
      for (const client of watched.clients) assert.equal(client.socket.readyState, 1);
      for (const aggregator of behind.aggregators) await aggregator.start();
      await usesAll(3);
      await eventually(() => isReady(behind.one), 'ready again');
      await eventually(async () => {
        const presences = await watched.observer.query(...watched.users);
        return presences.every(({ status }) => status === 'online');
      }, 'all are online again', QUICK_WINDOW_MS + 2 * LATE_MS);
      await assertInvariants(behind.redis, QUICK_WINDOW_MS);
    });
  });

/** A lease must outlive the time in which a stopped aggregator is noticed, so its window is the usual one. */
for (const [kind, { start }] of Object.entries(BACKENDS))
  describe(`a paused aggregator on ${kind}`, () => {
    const behind = behindAggregators(start, REALTIME, 2);

    test('it takes nobody offline for longer than a lease lasts, and leaves no ghost', async () => {
      const watched = await behind.watch('paused');
      await sleep(REALTIME_WINDOW_MS / 2); // so that renewals are due while it is paused
      behind.aggregators[1].pause();
      await behind.usesAll(1);
      await sleep(REALTIME_WINDOW_MS);
      behind.assertOnlyOnline(watched);
      await behind.expectAllLeave(watched);
      behind.aggregators[1].resume();
      await behind.usesAll(2);
      const again = await joinFleet(behind.two, 'asks-after-the-pause');
      const presences = await again.query(...watched.users);
      assert.deepEqual([...new Set(presences.map(({ status }) => status))], ['offline']);
    });
  });

describe('rollcall aggregate', () => {
  test('says what is missing', async () => {
    const { code, stderr } = await rollcall('aggregate', '--state', 'redis://127.0.0.1:1');
    assert.equal(code, 2);
    assert.match(stderr, /aggregate needs --peer-listen/);
    const gateway = await rollcall('serve', '--dev', '--aggregators', '127.0.0.1:1');
    assert.equal(gateway.code, 2);
    assert.match(gateway.stderr, /--aggregators needs peer.secret/);
  });
});
