/** A revocation on one gateway of a fleet holds on all: by its event at once, and from the ledger if the event is lost. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { closeAll, connect, rest } from '../support/client.mjs';
import { refusedConnect, startFleet } from '../support/fleet.mjs';
import { startRedis } from '../support/redis.mjs';

let redis;
let fleet;

before(async () => {
  redis = await startRedis();
  fleet = await startFleet({ redis });
});
after(async () => {
  await fleet.stop();
  await redis.stop();
});
afterEach(closeAll);

const revoke = async (gateway, user) => {
  const token = await gateway.token('root', { scope: 'admin' });
  return rest(gateway, 'POST', `/admin/v1/users/${user}/revoke`, { token });
};

test('a revocation ends the sessions on every gateway and holds on every gateway', async () => {
  const [one, two] = fleet.gateways;
  const token = await one.token('eve');
  const here = await connect(one, 'eve', { token });
  const there = await connect(two, 'eve', { token });
  assert.equal((await revoke(one, 'eve')).status, 200);
  for (const client of [here, there]) {
    assert.equal((await client.next('connection_closing')).reason, 'token_revoked');
    assert.equal((await client.ended()).code, 4001);
  }
  for (const gateway of [one, two]) {
    assert.equal((await refusedConnect(gateway, token)).status, 401);
    assert.equal((await rest(gateway, 'GET', '/v1/me', { token })).status, 401);
  }
});

test('a revocation whose event is lost holds within a few seconds', async () => {
  const [one] = fleet.gateways;
  const apart = await startRedis(); // a gateway on another Redis, with the same ledger, gets no event
  const two = await fleet.start('gw-003', { state: apart.url });
  const token = await one.token('mallory');
  const client = await connect(two, 'mallory', { token });
  assert.equal((await revoke(one, 'mallory')).status, 200);
  assert.equal((await client.next('connection_closing')).reason, 'token_revoked');
  assert.equal((await client.ended()).code, 4001);
  assert.equal((await refusedConnect(two, token)).status, 401);
  await two.stop();
  await apart.stop();
});
