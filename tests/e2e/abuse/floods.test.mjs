/** Clients that keep on beyond their limits: read more slowly, then closed with a reason; nobody else notices. */
import assert from 'node:assert/strict';
import { abuse } from '../support/abuse.mjs';
import { metric } from '../support/client.mjs';

const FLOOD_MS = 25000;

/** All connections were closed after about ten seconds, with reason and code. */
async function expectClosed({ attack, server }, connections) {
  const closed = attack.closings.filter(({ code }) => code !== undefined);
  const reasons = attack.closings.filter(({ reason }) => reason !== undefined);
  assert.equal(closed.length, connections);
  for (const { code, ms } of closed) {
    assert.equal(code, 4004);
    assert.ok(ms >= 9500 && ms <= 20000, `closed after ${ms} ms`);
  }
  assert.equal(reasons.length, connections);
  for (const { reason } of reasons) assert.equal(reason, 'rate_limited');
  assert.ok((await metric(server, 'limits_throttled')) > 0);
  assert.ok((await metric(server, 'limits_floods_closed')) >= connections);
}

const flood = (frame, connections) => ({ kind: 'websocket', connections, frames: [frame], batch: 100, everyMs: 20 });

abuse([
  {
    name: 'a flood of pings is closed',
    ms: FLOOD_MS,
    attack: flood(null, 4),
    check: (result) => expectClosed(result, 4),
  },
  {
    name: 'a flood of invalid messages is closed, each refused by name until then',
    ms: FLOOD_MS,
    attack: flood('nonsense', 4),
    async check(result) {
      assert.ok(result.attack.answers.INVALID_MESSAGE >= 4 * 100);
      assert.ok(result.attack.answers.RATE_LIMITED > 0);
      await expectClosed(result, 4);
    },
  },
  {
    name: 'a flood of heartbeats is closed',
    ms: FLOOD_MS,
    attack: flood(JSON.stringify({ type: 'heartbeat' }), 4),
    check: (result) => expectClosed(result, 4),
  },
  {
    name: 'a flood by Socket.IO polling is answered more slowly, then closed',
    ms: FLOOD_MS,
    attack: { kind: 'polling', event: '42["heartbeat",{}]' },
    async check({ attack }) {
      assert.equal(attack.closings.length, 1);
      const [{ reason, ms }] = attack.closings;
      assert.equal(reason, 'rate_limited');
      assert.ok(ms >= 9500 && ms <= 20000, `closed after ${ms} ms`);
      assert.ok(attack.answers['POST 200'] <= 10 + 2 * (ms / 1000), `${attack.answers['POST 200']} POSTs`);
    },
  },
]);
