/**
 * One user who opens very many connections: the user keeps limits.connections_per_user of them, and nobody else notices.
 * USER_CONNECTIONS: how many are opened; `make soak` opens 10000.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, deliver, eventually, metric, rest } from '../support/client.mjs';
import { startServer } from '../support/server.mjs';

const CONNECTIONS = Number(process.env.USER_CONNECTIONS ?? 300);
const LIMIT = 50;
const AT_ONCE = 20;
const BEATS = 41;

let server;
before(async () => {
  server = await startServer({ args: ['--workers', '2'], settings: { 'limits.connections_per_user': LIMIT } });
});
after(() => server.stop());
afterEach(closeAll);

/** The milliseconds that a client waits for the answer to a heartbeat: the median of several. */
async function heartbeatMs(client, more = async () => {}) {
  const times = [];
  for (let n = 0; n < BEATS; n += 1) {
    await more(n);
    const began = performance.now();
    await client.ask({ type: 'heartbeat' });
    times.push(performance.now() - began);
  }
  return times.sort((a, b) => a - b)[BEATS >> 1];
}

test(`of ${CONNECTIONS} connections of one user ${LIMIT} stay`, { timeout: 1800000 }, async () => {
  const victim = await connect(server, 'victim');
  const token = await server.token('many');
  const codes = [];
  let last;
  const openOne = async () => {
    last = await connect(server, 'many', { token });
    last.ended().then(({ code }) => codes.push(code), () => {});
  };
  const openSome = async (count) => {
    for (let n = 0; n < count; n += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - n) }, openOne));
  };
  const alone = await heartbeatMs(victim);
  const share = Math.floor(CONNECTIONS / BEATS);
  const beside = await heartbeatMs(victim, () => openSome(share));
  await openSome(CONNECTIONS - share * BEATS);
  assert.ok(beside < 10 * alone + 50, `a heartbeat takes ${alone} ms, beside new connections ${beside} ms`);

  await eventually(() => codes.length === CONNECTIONS - LIMIT, 'all others are closed');
  assert.deepEqual(new Set(codes), new Set([4006]));
  assert.equal(await metric(server, 'gateway_connections_evicted'), CONNECTIONS - LIMIT);
  const admin = await server.token('root', { scope: 'admin' });
  const { body } = await rest(server, 'GET', '/admin/v1/connections?user=many', { token: admin });
  assert.equal(body.connections.length, LIMIT);
  assert.equal((await last.ask({ type: 'heartbeat' })).type, 'heartbeat_ack', 'the newest stays');
  const deliverer = await server.token('root', { scope: 'deliver' });
  assert.equal(await deliver(server, deliverer, 'many', { text: 'hello' }), LIMIT);
  assert.equal(await deliver(server, deliverer, 'victim', { text: 'hello' }), 1);
});
