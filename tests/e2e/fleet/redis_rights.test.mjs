/** The rights that a fleet needs in Redis: those of deploy/redis.conf are enough, and one that is missing is told. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeChat } from '../support/chats.mjs';
import { closeAll, connect, devToken, eventually, refusal, rest } from '../support/client.mjs';
import { befriend, friends } from '../support/contacts.mjs';
import { BACKENDS, isReady, joinFleet, QUICK, sendUntilAcked, startFleet } from '../support/fleet.mjs';
import { closeAllSocketIo, connectSocketIo } from '../support/socketio.mjs';
import { rollcall } from '../support/server.mjs';

const PASSWORD = 'CHANGE-ME';
const conf = readFileSync(fileURLToPath(new URL('../../../deploy/redis.conf', import.meta.url)), 'utf8');
const [, rights] = /^# +ACL SETUSER (.*)$/m.exec(conf);

const nodesOf = (redis) => redis.nodes ?? [redis];
const withUser = (url, user) => url.replace('://', `://${user}:${PASSWORD}@`);

async function setUser(redis, ...rules) {
  for (const node of nodesOf(redis)) await node.command('ACL', 'SETUSER', ...rules);
}

/** What Redis has refused so far, as "reason object". */
async function refusals(redis) {
  const logs = await Promise.all(nodesOf(redis).map((node) => node.command('ACL', 'LOG')));
  return logs.flat().map((entry) => {
    const at = (name) => entry[entry.indexOf(name) + 1];
    return `${at('reason')} ${at('object')} (${at('username')})`;
  });
}

afterEach(() => {
  closeAll();
  closeAllSocketIo();
});

for (const [name, backend] of Object.entries(BACKENDS)) {
  test(`the rights in deploy/redis.conf are enough (${name})`, async (t) => {
    const redis = await backend.start();
    t.after(() => redis.stop());
    await setUser(redis, ...rights.split(' '));
    const url = withUser(redis.url, 'rollcall');
    const fleet = await startFleet({ redis: { url }, settings: { ...QUICK, 'presence.offline_grace_seconds': 1 } });
    t.after(() => fleet.stop());
    const [one, two] = fleet.gateways;
    await befriend(one, 'alice', 'bob');
    await makeChat(one, 'team', 'alice', 'bob');
    const alice = await joinFleet(one, 'alice');
    const bob = await joinFleet(two, 'bob');
    await alice.subscribe('bob');
    await sendUntilAcked(alice, 'team', 'hello');
    await eventually(() => bob.bodies().includes('hello'), 'the message arrives');
    alice.send({ type: 'typing_start', chat_id: 'team' });
    const { call_id } = await alice.ask({ type: 'call_start', to: 'bob', media: 'audio' });
    await alice.ask({ type: 'call_hangup', call_id });
    const socket = await connectSocketIo(two, 'carol');
    socket.socket.io.engine.close(); // its session is kept for a while
    await bob.close();
    await alice.nextChange('bob', 'offline');
    assert.equal((await friends(one, 'alice')).length, 1);
    await rest(one, 'GET', '/v1/presence?users=bob', { user: 'alice' });
    const checked = await rollcall('check', '--state', url, '--ledger', fleet.ledger.url);
    assert.doesNotMatch(checked.stderr + checked.stdout, /NOPERM|WRONGPASS/);
    assert.deepEqual(await refusals(redis), []);
  });

  test(`without rights for channels a gateway is not ready and says why (${name})`, async (t) => {
    const redis = await backend.start();
    t.after(() => redis.stop());
    await setUser(redis, 'deaf', 'on', `>${PASSWORD}`, '~*', '+@all', 'resetchannels');
    const fleet = await startFleet({ redis: { url: withUser(redis.url, 'deaf') }, gateways: [], settings: QUICK });
    t.after(() => fleet.stop());
    const server = await fleet.start('gw-001', { ready: false });
    const refusedBy = (reason) => async () => (await rest(server, 'GET', '/readyz')).body.error?.message === reason;
    await eventually(refusedBy("this gateway's channel is not subscribed yet"), 'it says what it waits for');
    const token = await devToken(server, 'alice');
    assert.equal((await refusal(`${server.url.replace('http', 'ws')}v1/ws?token=${token}`)).status, 503);
    await eventually(() => /redis_subscribe_refused .*NOPERM/.test(server.log()), 'the log has the words of Redis');
    await setUser(redis, 'deaf', 'allchannels');
    await eventually(() => isReady(server), 'it is ready with the rights');
    await connect(server, 'alice');
  });
}
