/** The budget of a key: requests beyond it get 429, those of another key do not. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { metric, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const RATE = 1;
const BURST = 120;

let server;
let eager;
let calm;

before(async () => {
  server = await startServer({
    args: ['--workers', '1'],
    settings: { 'limits.service_per_second_per_key': RATE, 'limits.service_per_second_per_key_burst': BURST },
  });
  eager = await server.token('eager', { scope: 'service' });
  calm = await server.token('calm', { scope: 'service' });
});
after(() => server.stop());

const deliver = (token, to) => rest(server, 'POST', '/v1/service/deliver', { token, body: { to, data: 1 } });

test('an event for everyone costs a hundred requests, and beyond the budget of a key is 429', async () => {
  assert.equal((await deliver(eager, { everyone: true })).status, 200);
  const { status, headers, body } = await deliver(eager, { everyone: true });
  assert.deepEqual([status, body.error.code], [429, 'RATE_LIMITED']);
  assert.ok(Number(headers.get('retry-after')) >= 1);
  assert.ok(body.error.retry_after_seconds > 0);
  let refused = 0;
  for (let i = 0; i < BURST; i += 1) refused += (await deliver(eager, { users: ['bob'] })).status === 429 ? 1 : 0;
  assert.ok(refused > BURST / 2, `${refused} refused`);
  assert.equal((await deliver(calm, { everyone: true })).status, 200);
  assert.ok((await metric(server, 'limits_refused_service')) >= refused);
});
