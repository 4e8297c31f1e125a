/** The service API in a fleet, on a single Redis and on a cluster. */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { closeAll, connect, eventually, rest } from '../support/client.mjs';
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
