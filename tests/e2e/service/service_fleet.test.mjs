/** The service API in a fleet, on a single Redis and on a cluster. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { closeAll, connect, eventually, rest, sleep } from '../support/client.mjs';
import { BACKENDS, REALTIME, startFleet } from '../support/fleet.mjs';
import { rollcall } from '../support/server.mjs';

for (const [backend, { start }] of Object.entries(BACKENDS))
  describe(`service API on ${backend}`, () => {
    let redis;
    let fleet;
    let one;
    let two;
    let key;

    before(async () => {
      redis = await start();
      fleet = await startFleet({ redis, settings: REALTIME });
      [one, two] = fleet.gateways;
      const made = await rollcall('key', 'create', 'fleet', '--data-dir', fleet.dataDir);
      assert.equal(made.code, 0, made.stderr);
      key = made.stdout.trim();
    });
    after(async () => {
      await fleet?.stop();
      await redis?.stop();
    });
    afterEach(closeAll);

    const deliver = (server, to) => rest(server, 'POST', '/v1/service/deliver', { token: key, body: { to, event: 'e', data: 1 } });

    test('an event reaches users and everyone on all gateways, whichever is asked', async () => {
      const clients = [await connect(one, 'ann'), await connect(two, 'ann'), await connect(two, 'ben')];
      for (const server of [one, two])
        for (const to of [{ users: ['ann', 'ben', 'nobody'] }, { everyone: true }]) {
          const { status, body } = await deliver(server, to);
          assert.deepEqual([status, body], [200, { accepted: 2 }]);
          for (const client of clients) assert.equal((await client.next('delivery')).event, 'e');
        }
    });

    /** All keys, and what is in them, as one text. */
    async function dump() {
      const read = { string: ['GET'], hash: ['HGETALL'], set: ['SMEMBERS'], list: ['LRANGE', 0, -1], zset: ['ZRANGE', 0, -1] };
      const lines = [];
      for (const name of await redis.keys()) {
        const [command, ...rest_] = read[await redis.command('TYPE', name)] ?? [];
        lines.push(`${name} ${command ? JSON.stringify(await redis.command(command, name, ...rest_)) : ''}`);
      }
      return lines;
    }

    test('an erased user leaves nothing in Redis, and a new account of that id starts above the old version', async () => {
      const service = (method, path, body) => rest(two, method, `/v1/service${path}`, { token: key, body });
      const old = await one.token('zoe');
      await service('PUT', '/contacts/zoe/ben');
      await rest(one, 'POST', '/v1/contact-requests', { token: old, body: { to: 'cid' } });
      await rest(one, 'PATCH', '/v1/me', { token: old, body: { display_name: 'Zoe' } });
      await rest(one, 'POST', '/v1/chats', { token: old, body: { chat_id: 'zoes', members: ['ben'] } });
      const devices = [await connect(one, 'zoe', { token: old }), await connect(two, 'zoe', { token: old })];
      const ben = await connect(two, 'ben');
      await devices[0].ask({ type: 'open_chat', chat_id: 'zoes' });
      devices[0].send({ type: 'typing_start', chat_id: 'zoes' });
      await devices[1].ask({ type: 'call_request', to: 'ben' });
      const { body: before } = await service('GET', '/presence?users=zoe');
      assert.equal(before.presences[0].status, 'online');
      assert.ok((await dump()).some((line) => line.includes('zoe')));

      assert.equal((await service('DELETE', '/users/zoe')).status, 204);
      for (const device of devices) assert.equal((await device.ended()).code, 4001);
      assert.equal((await ben.next('contact_removed')).user_id, 'zoe');
      const left = async () => (await dump()).filter((line) => /\bzoe\b/.test(line) && !/^call:/.test(line)); // an ended call goes by itself, soon
      await eventually(async () => (await left()).length === 0, 'nothing is left').catch(() => {});
      assert.deepEqual(await left(), []);
      assert.equal((await rest(one, 'GET', '/v1/me', { token: old })).status, 401);
      const { body: after_ } = await service('GET', '/presence?users=zoe');
      assert.deepEqual([after_.presences[0].status, after_.presences[0].last_seen], ['offline', null]);

      await sleep(1100); // tokens of the second of the erasure are refused
      await connect(one, 'zoe');
      await eventually(async () => (await service('GET', '/presence?users=zoe')).body.presences[0].status === 'online', 'online again');
      const { body: anew } = await service('GET', '/presence?users=zoe');
      assert.ok(anew.presences[0].version > before.presences[0].version, JSON.stringify([anew, before]));
    });

    test('everybody online is listed once over all pages', async () => {
      const names = Array.from({ length: 30 }, (_, index) => `page-${index}`);
      await Promise.all(names.map((name, index) => connect(index % 2 ? one : two, name)));
      await eventually(async () => {
        const listed = [];
        let next = '';
        do {
          const { body } = await rest(one, 'GET', `/v1/service/online?limit=7&after=${encodeURIComponent(next)}`, { token: key });
          listed.push(...body.users);
          next = body.next;
        } while (next !== null);
        const found = listed.filter((user) => user.startsWith('page-'));
        return found.length === names.length && new Set(found).size === names.length;
      }, 'all are listed'); // on a cluster the sets follow a transition
    });
  });
