/**
 * Clients that follow the protocol while their connections are cut at random: in the end each has every message
 * once and in order, and every sent message is stored once. $CUTS is the number of cuts (300).
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { WebSocket } from 'ws';
import { Rollcall } from '../../../clients/js/rollcall.js';
import { AMPLE_RATES, makeChat } from '../support/chats.mjs';
import { devToken, eventually, rest, sleep } from '../support/client.mjs';
import { startProxy } from '../support/proxy.mjs';
import { startServer } from '../support/server.mjs';

const CUTS = Number(process.env.CUTS ?? 300);
const LONG_MS = 600000 + CUTS * 100;

/** Time limits of the client's requests and handshakes, which a busy machine needs. */
const LIMIT_MS = 10000;

/** Runs the client's back-off a hundred times as fast. */
const fastTimers = {
  setTimeout: (run, ms) => setTimeout(run, ms > 1000 && ms !== LIMIT_MS ? ms / 100 : ms),
  clearTimeout,
  now: Date.now,
};

const SETTINGS = { ...AMPLE_RATES, 'gateway.workers': 2 };

/** Connects a user and opens the chat; `received` collects every message that the client emits. */
async function join(server, proxy, user) {
  const client = new Rollcall({
    url: proxy.url,
    token: await devToken(server, user),
    deviceId: `${user}-device`,
    WebSocket,
    timers: fastTimers,
  });
  const received = [];
  client.on('message', (message) => received.push(message));
  client.on('error', () => {});
  after(() => client.close());
  await client.connect();
  await client.openChat('c', { afterSequence: 0 });
  return { user, client, received };
}

/** Cuts connections at random until the number of cuts is reached; `goesOn()` is true until then. */
function startCutting(proxy) {
  let cutting = true;
  const ended = (async () => {
    while (cutting && proxy.cuts < CUTS) {
      await sleep(5 + Math.random() * 40);
      proxy.cut(0.5);
    }
    cutting = false;
  })();
  return { goesOn: () => cutting, ended };
}

/** Sends while connections are cut; records in `acks` the body of each acknowledged sequence. */
async function sendWhileCut({ user, client }, cutting, acks) {
  for (let n = 0; cutting.goesOn(); n += 1) {
    const body = `${user} ${n}`;
    const ack = await client.sendMessage('c', body).catch((error) => error);
    if (ack instanceof Error) {
      assert.ok(ack.retryable ?? true, `${body}: ${ack.code} ${ack.message}`);
      continue;
    }
    assert.ok(!acks.has(ack.sequence), `sequence ${ack.sequence} given twice`);
    acks.set(ack.sequence, body);
  }
}

async function expectEachOnceInOrder({ user, received }, latest, acks) {
  await eventually(() => received.length >= latest, `${user} has all ${latest} messages`, 60000);
  await sleep(50);
  assert.deepEqual(
    received.map(({ sequence }) => sequence),
    Array.from({ length: latest }, (_, i) => i + 1),
    `${user} has each message once, in order`,
  );
  for (const [sequence, body] of acks) assert.equal(received[sequence - 1].body, body);
  assert.equal(new Set(received.map(({ body }) => body)).size, latest, 'no message is stored twice');
}

test(`every member has every message once and in order after ${CUTS} cuts`, { timeout: LONG_MS }, async () => {
  const server = await startServer({ settings: SETTINGS });
  const proxy = await startProxy(server.port);
  after(async () => {
    proxy.close();
    await server.stop();
  });
  const users = ['alice', 'bob', 'carol'];
  await makeChat(server, 'c', ...users);
  const members = await Promise.all(users.map((user) => join(server, proxy, user)));

  const acks = new Map();
  const cutting = startCutting(proxy);
  await Promise.all(members.map((member) => sendWhileCut(member, cutting, acks)));
  await cutting.ended;

  const latest = (await rest(server, 'GET', '/v1/chats/c', { user: 'alice' })).body.latest_sequence;
  assert.ok(proxy.cuts >= CUTS, `${proxy.cuts} cuts`);
  assert.ok(acks.size > 50, `${acks.size} messages`);
  for (const member of members) {
    await expectEachOnceInOrder(member, latest, acks);
    member.client.close();
  }
});
