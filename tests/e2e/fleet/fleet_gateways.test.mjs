/** A fleet whose gateways crash, pause, start twice or stop, with short leases, on both kinds of Redis. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, metric, setVisibility, sleep } from '../support/client.mjs';
import {
  assertInvariants,
  BACKENDS,
  isReady,
  joinFleet,
  keepAlive,
  QUICK,
  QUICK_WINDOW_MS,
  sendUntilAcked,
  startFleet,
} from '../support/fleet.mjs';
import { ROLLCALL_BIN } from '../support/server.mjs';

const CONCURRENT = { concurrency: true };
const LATE_MS = 1000; // the delay that is allowed after the window
const BUSY_MACHINE_MS = 5000; // what a busy machine may add to a time limit

for (const [kind, { start, key, connection }] of Object.entries(BACKENDS))
  describe(`failing gateways on ${kind}`, () => {
    let redis;
    let fleet;
    let one;
    let two;

    const members = async (prefix, user) => (await redis.command('SMEMBERS', key(prefix, user))).sort();

    /** Connects an observer to each gateway and subscribes it to these users. */
    async function observe(...users) {
      for (const user of users) await setVisibility(one, user, 'everyone');
      const observers = [await joinFleet(one, `o-${users[0]}`), await joinFleet(two, `o-${users[0]}`)];
      for (const observer of observers) await observer.subscribe(...users);
      return observers;
    }

    /** Expects these changes of status for each user, in this order, and no others. */
    function assertStatusChanges(observer, expected) {
      const byUser = {};
      for (const { user_id: user, status } of observer.changes()) (byUser[user] ??= []).push(status);
      assert.deepEqual(byUser, expected);
    }

    before(async () => {
      redis = await start();
      fleet = await startFleet({ redis, settings: QUICK });
      [one, two] = fleet.gateways;
    });
    after(async () => {
      closeAll();
      await fleet?.stop();
      await redis?.stop();
    });

    test('each gateway’s metric counts the live gateways', async () => {
      for (const server of fleet.gateways)
        await eventually(async () => (await metric(server, 'gateway_instances_healthy')) === 2, 'two live gateways');
    });

    describe('concurrently', CONCURRENT, () => {
      test('users of a killed gateway go offline once, in time, with their last heartbeat as last seen', async () => {
        const users = Array.from({ length: 20 }, (_, n) => `killed-${n}`);
        const observers = await observe(...users);
        const doomed = await fleet.start('gw-killed');
        await Promise.all(users.map((user) => joinFleet(doomed, user)));
        for (const observer of observers) for (const user of users) await observer.nextChange(user, 'online');
        await sleep(1500);
        const crashed = Date.now();
        await fleet.crash(doomed);
        for (const observer of observers)
          for (const user of users) {
            const { last_seen: seen } = await observer.nextChange(user, 'offline');
            const took = Date.now() - crashed;
            assert.ok(took < QUICK_WINDOW_MS + LATE_MS + BUSY_MACHINE_MS, `${user} after ${took} ms`);
            const before = crashed - Date.parse(seen);
            assert.ok(before > -100 && before < QUICK_WINDOW_MS, `${user} last seen ${before} ms before`);
          }
        await sleep(LATE_MS);
        const expected = Object.fromEntries(users.map((user) => [user, ['online', 'offline']]));
        for (const observer of observers) assertStatusChanges(observer, expected);
        const left = () => redis.keys('*gw-killed*');
        await eventually(async () => (await left()).length === 0, 'no key of the killed gateway is left');
      });

      test('a gateway paused for longer than its lease resumes and overwrites nothing newer', async () => {
        const users = ['paused', 'moved'];
        const [observer] = await observe(...users);
        const paused = await fleet.start('gw-paused');
        const clients = await Promise.all(users.map((user) => joinFleet(paused, user)));
        for (const user of users) await observer.nextChange(user, 'online');
        process.kill(paused.pid, 'SIGSTOP');
        paused.paused = true;
        for (const user of users) await observer.nextChange(user, 'offline');
        const elsewhere = await joinFleet(two, 'moved');
        await observer.nextChange('moved', 'online');
        process.kill(paused.pid, 'SIGCONT');
        paused.paused = false;
        await eventually(async () => isReady(paused), 'the gateway is ready again');
        // To the gateway its clients were silent as well: it may keep them, or close them and publish that.
        await sleep(QUICK_WINDOW_MS);
        const open = clients.filter(({ socket }) => socket.readyState === 1).length;
        const routes = await members('user_servers', 'moved');
        assert.ok(routes.includes('gw-002'), routes.join());
        assert.equal((await observer.query('moved'))[0].status, 'online');
        assert.equal((await observer.query('paused'))[0].status, open > 0 ? 'online' : 'offline');
        const moved = observer.changes().filter(({ user_id: user }) => user === 'moved');
        assert.deepEqual(moved.map(({ status }) => status), ['online', 'offline', 'online']);
        await elsewhere.close();
        for (const client of clients) client.terminate();
        await paused.stop();
      });

      test('a clock that jumps forward and back changes no presence and no last-seen time', async () => {
        const users = ['jumped', 'late'];
        const [observer] = await observe(...users);
        const clock = join(fleet.dataDir, 'clock');
        const jumper = await fleet.start('gw-jumper', {
          env: {
            LD_PRELOAD: join(dirname(ROLLCALL_BIN), 'libclock_jump.so'),
            CLOCK_JUMP: clock,
            ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
          },
        });
        const jumped = await joinFleet(jumper, 'jumped');
        await observer.nextChange('jumped', 'online');
        for (const seconds of [1800, -1800]) {
          await writeFile(clock, String(seconds));
          const { server_time: serverTime } = await jumped.ask({ type: 'heartbeat' });
          assert.ok(Math.abs(Date.parse(serverTime) - Date.now() - seconds * 1000) < 60000, `the clock jumped: ${serverTime}`);
          await sleep(QUICK_WINDOW_MS + LATE_MS);
        }
        const late = await joinFleet(jumper, 'late');
        await observer.nextChange('late', 'online');
        await late.close();
        const { last_seen: seen } = await observer.nextChange('late', 'offline');
        assert.ok(Math.abs(Date.parse(seen) - Date.now()) < 60000, `last seen ${seen}`);
        assertStatusChanges(observer, { jumped: ['online'], late: ['online', 'offline'] });
        assert.deepEqual(await members('user_servers', 'jumped'), ['gw-jumper']);
        await jumped.close();
        await jumper.stop();
      });

      test('a second gateway with the same id does not start, and the error names the id', async () => {
        await assert.rejects(fleet.start('gw-001'), /gw-001/);
        assert.ok(await isReady(one), 'the first one is still ready');
      });

      test('after a crash the gateway’s id can be used again at once, on the same machine', async () => {
        const first = await fleet.start('gw-again');
        await fleet.crash(first);
        const second = await fleet.start('gw-again');
        assert.ok(await isReady(second));
        assert.match(second.log(), /event=gateway_taken_over/);
      });

      test('a paused gateway whose id was taken writes nothing after it resumes', async () => {
        const zombie = await fleet.start('gw-zombie');
        await joinFleet(zombie, 'undead');
        process.kill(zombie.pid, 'SIGSTOP');
        await sleep(QUICK_WINDOW_MS + LATE_MS);
        const successor = await fleet.start('gw-zombie');
        const record = await redis.command('HGET', 'gateway:gw-zombie', 'instance');
        process.kill(zombie.pid, 'SIGCONT');
        await sleep(QUICK_WINDOW_MS);
        assert.equal(await redis.command('HGET', 'gateway:gw-zombie', 'instance'), record);
        assert.deepEqual(await members('user_connections', 'undead'), []);
        assert.ok(await isReady(successor));
        if (zombie.child.exitCode === null) assert.ok(!(await isReady(zombie)));
        await zombie.stop('SIGKILL');
      });

      test('a gateway stopped by SIGTERM leaves no keys behind', async () => {
        const leaver = await fleet.start('gw-leaver');
        const [observer] = await observe('left');
        await joinFleet(leaver, 'left');
        await observer.nextChange('left', 'online');
        assert.equal(await leaver.stop(), 0);
        await observer.nextChange('left', 'offline');
        const kept = /^(last_seen|presence_history|user_presence|user|presence_visibility):/;
        const keys = (await redis.keys('*')).filter((name) => /gw-leaver|left/.test(name) && !/o-left|^budget:/.test(name));
        assert.deepEqual(keys.filter((name) => !kept.test(name)), []);
        if (kind === 'standalone') {
          const index = await redis.command('ZRANGE', 'presence:v_heartbeat', 0, -1);
          assert.ok(!index.some((member) => member.endsWith(':left')));
        }
      });

      test('a dead device is removed within the window while another device stays', async () => {
        const [observer] = await observe('pair');
        const alive = await joinFleet(one, 'pair');
        const dead = await connect(two, 'pair', { ws: { autoPong: false } });
        assert.deepEqual(await members('user_servers', 'pair'), ['gw-001', 'gw-002']);
        await eventually(
          async () =>
            (await members('user_connections', 'pair')).join() === alive.established.conn_id &&
            (await members('user_servers', 'pair')).join() === 'gw-001',
          'only the live device is registered',
          QUICK_WINDOW_MS + LATE_MS + BUSY_MACHINE_MS,
        );
        assert.equal(await redis.command('EXISTS', connection('pair', dead.established.conn_id)), 0);
        assertStatusChanges(observer, { pair: ['online'] });
      });

      test('unusual ids work and touch no other keys', async () => {
        const odd = ['a b', 'a:b', '{a}', 'a}b', '}{', '%7D', '%25', '😀', 'x'.repeat(128), 'a*?[b]'];
        const devices = ['d DEL x', '{d}', 'd:e', '😀'];
        await redis.command('SET', '{guard}:x', 'untouched');
        const observer = await joinFleet(two, 'odd observer');
        const clients = [];
        for (const [n, user] of odd.entries()) {
          await setVisibility(one, user, 'everyone');
          clients.push(await joinFleet(n % 2 ? one : two, user, { device: devices[n % devices.length] }));
        }
        const seen = await observer.query(...odd);
        assert.deepEqual(seen.map(({ user_id: user, status }) => [user, status]), odd.map((user) => [user, 'online']));
        await makeChat(one, 'odd chat; {x} 😀', ...odd.slice(0, 4));
        await sendUntilAcked(clients[0], 'odd chat; {x} 😀', 'hello');
        for (const client of clients.slice(1, 4)) assert.equal((await client.next('message')).body, 'hello');
        for (const client of clients.slice(0, 5)) await client.close();
        const after = await observer.query(...odd);
        assert.deepEqual(after.map(({ status }) => status), odd.map((_, n) => (n < 5 ? 'offline' : 'online')));
        assert.equal(await redis.command('GET', '{guard}:x'), 'untouched');
      });

      test('a client that only answers pings stays connected', async () => {
        const quiet = await connect(one, 'quiet');
        await sleep(QUICK_WINDOW_MS * 2);
        assert.equal(quiet.socket.readyState, 1);
        assert.deepEqual(await members('user_servers', 'quiet'), ['gw-001']);
        keepAlive(quiet, 1000);
      });
    });

    test('the invariants hold after all faults', () => assertInvariants(redis, QUICK_WINDOW_MS));

    test('foreign values under our keys are replaced', async () => {
      const [observer] = await observe('corrupt');
      const prefixes = ['user_connections', 'user_servers', 'user_presence', 'last_seen'];
      for (const prefix of prefixes) {
        const client = await joinFleet(one, 'corrupt');
        await observer.nextChange('corrupt', 'online');
        const name = key(prefix, 'corrupt');
        await redis.command('DEL', name);
        await redis.command('RPUSH', name, 'not', 'ours');
        await sleep(QUICK_WINDOW_MS + LATE_MS);
        assert.equal((await client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
        await client.close();
        await eventually(
          async () => (await observer.query('corrupt'))[0].status === 'offline',
          `the user is offline after ${prefix} was replaced`,
        );
        await observer.settle();
        observer.messages.length = 0;
        await redis.command('DEL', name);
      }
      assert.ok(await isReady(one));
    });
  });
