/**
 * Redis's clock is set forward or back while users are connected to two gateways: what had a time by that clock is overdue
 * at once, or too late. On one Redis and on a cluster, all of whose masters step together.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { setVisibility, sleep } from '../support/client.mjs';
import { assertInvariants, BACKENDS, joinFleet, QUICK, QUICK_WINDOW_MS, startFleet } from '../support/fleet.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const USERS = 12;
const WINDOWS_WATCHED = 3;
const QUERY_INTERVAL_MS = 50;
const IN_TIME_MS = 2 * QUICK_WINDOW_MS + 5000 + 10000; // nothing is reaped for a window; a busy machine may add the last part

/** A Redis whose clock `step(seconds)` sets to so many seconds from now, and a fleet on it. */
async function setUp(t, backend, settings) {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-clock-'));
  const file = join(directory, 'clock');
  await writeFile(file, '0');
  const env = { LD_PRELOAD: join(dirname(ROLLCALL_BIN), 'libclock_jump.so'), CLOCK_JUMP: file };
  const redis = await backend.start({ env });
  const fleet = await startFleet({ redis, settings });
  const clients = [];
  t.after(async () => {
    for (const client of clients) client.terminate();
    await fleet.stop();
    await redis.stop();
    await rm(directory, { recursive: true });
  });
  const node = redis.nodes?.[0] ?? redis;
  const step = async (seconds) => {
    await writeFile(file, String(seconds));
    const [now] = await node.command('TIME');
    assert.ok(Math.abs(Number(now) - Date.now() / 1000 - seconds) < 5, `the clock of Redis says ${now}`);
  };
  const enter = async (server, user, options) => {
    clients.push(await joinFleet(server, user, options));
    return clients.at(-1);
  };
  return { redis, fleet, step, enter, servers: fleet.gateways };
}

/**
 * Every user has a device on the first gateway. Every second one has a device on the second gateway too, which connects at
 * another time, so that its lease ends at another time. Observers watch all users from both gateways.
 */
async function populate({ servers, enter }) {
  const users = Array.from({ length: USERS }, (_, n) => `user-${n}`);
  const observers = [];
  for (const user of users) await setVisibility(servers[0], user, 'everyone');
  for (const user of users) {
    await enter(servers[0], user);
    await sleep(QUICK_WINDOW_MS / USERS);
  }
  const second = [];
  for (const user of users.filter((_, n) => n % 2)) second.push(await enter(servers[1], user, { device: 'second' }));
  for (const server of servers) {
    const observer = await enter(server, 'observer');
    await observer.subscribe(...users);
    observers.push(observer);
  }
  await sleep(2 * QUICK_WINDOW_MS); // the gateways reap by now
  return { users, second, observers };
}

/** Asks again and again for some windows: everybody is online, and no observer is told of a change. */
async function assertAllStayOnline(users, observers) {
  const until = Date.now() + WINDOWS_WATCHED * QUICK_WINDOW_MS;
  while (Date.now() < until) {
    for (const observer of observers)
      for (const { user_id: user, status } of await observer.query(...users)) assert.equal(status, 'online', user);
    await sleep(QUERY_INTERVAL_MS);
  }
  for (const observer of observers) assert.deepEqual(observer.changes(), []);
}

for (const [name, backend] of Object.entries(BACKENDS))
  describe(`the clock of Redis is set (${name})`, { concurrency: 2 }, () => {
    for (const seconds of [30, 2])
      test(`${seconds} s forward: nobody is told offline`, async (t) => {
        const world = await setUp(t, backend, QUICK);
        const { users, observers } = await populate(world);
        await world.step(seconds);
        await assertAllStayOnline(users, observers);
        await assertInvariants(world.redis, QUICK_WINDOW_MS);
      });

    for (const seconds of [30, 2])
      test(`${seconds} s forward: who leaves one gateway just then is still online on the other`, async (t) => {
        const world = await setUp(t, backend, QUICK);
        const { users, second, observers } = await populate(world);
        await world.step(seconds);
        for (const device of second) device.terminate();
        await assertAllStayOnline(users, observers);
        await assertInvariants(world.redis, QUICK_WINDOW_MS);
      });

    test('forward: who leaves later is told offline in time, and so is who was on a gateway that dies', async (t) => {
      const world = await setUp(t, backend, QUICK);
      await setVisibility(world.servers[0], 'leaves', 'everyone');
      await setVisibility(world.servers[0], 'dies', 'everyone');
      const doomed = await world.fleet.start('gw-doomed');
      const leaves = await world.enter(world.servers[0], 'leaves');
      await world.enter(doomed, 'dies');
      const observer = await world.enter(world.servers[1], 'observer');
      await observer.subscribe('leaves', 'dies');
      await sleep(2 * QUICK_WINDOW_MS);
      await world.step(30);
      await world.fleet.crash(doomed);
      await leaves.close();
      const crashed = Date.now();
      for (const user of ['leaves', 'dies']) await observer.nextChange(user, 'offline', IN_TIME_MS);
      assert.ok(Date.now() - crashed < IN_TIME_MS);
    });
  });
