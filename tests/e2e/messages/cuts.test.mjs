/**
 * Clients that follow the contract and are cut off at random: after all of it, each has every message
 * once and in order, and every message that was sent is there once. $CUTS sets how many (300).
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
const LONG_MS = 120000 + CUTS * 100;

/** Back-off runs a hundred times as fast, or the test would mostly wait. */
const hurried = {
  setTimeout: (run, ms) => setTimeout(run, ms > 1000 ? ms / 100 : ms),
  clearTimeout,
  now: Date.now,
};

const SETTINGS = { ...AMPLE_RATES, 'gateway.workers': 2 };

/** Somebody in the chat, and every message as it was given out. */
async function join(server, proxy, user) {
  const client = new Rollcall({
    url: proxy.url,
    token: await devToken(server, user),
    deviceId: `${user}-device`,
    WebSocket,
    timers: hurried,
  });
  const got = [];
  client.on('message', (message) => got.push(message));
  client.on('error', () => {});
  await client.connect();
  await client.openChat('c', { afterSequence: 0 });
  return { user, client, got };
}

/** Cuts connections at random until it has been enough; `goesOn()` says whether it has. */
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

/** Sends as long as cutting goes on; notes in `acks` what has which sequence. */
async function talk({ user, client }, cutting, acks) {
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

async function hasEachOnceAndInOrder({ user, got }, latest, acks) {
  await eventually(() => got.length >= latest, `${user} has all ${latest}`, 30000);
  await sleep(50);
  assert.deepEqual(
    got.map(({ sequence }) => sequence),
    Array.from({ length: latest }, (_, i) => i + 1),
    `${user} has each once, in order`,
  );
  for (const [sequence, body] of acks) assert.equal(got[sequence - 1].body, body);
  assert.equal(new Set(got.map(({ body }) => body)).size, latest, 'no message is stored twice');
}

test(`${CUTS} cuts: every message once, in order, at everybody`, { timeout: LONG_MS }, async () => {
  const server = await startServer({ settings: SETTINGS });
  const proxy = await startProxy(server.port);
  after(async () => {
    proxy.close();
    await server.stop();
  });
  const users = ['alice', 'bob', 'carol'];
  await makeChat(server, 'c', ...users);
  const people = await Promise.all(users.map((user) => join(server, proxy, user)));

  const acks = new Map();
  const cutting = startCutting(proxy);
  await Promise.all(people.map((person) => talk(person, cutting, acks)));
  await cutting.ended;

  const latest = (await rest(server, 'GET', '/v1/chats/c', { user: 'alice' })).body.latest_sequence;
  assert.ok(proxy.cuts >= CUTS, `${proxy.cuts} cuts`);
  assert.ok(acks.size > 50, `${acks.size} messages`);
  for (const person of people) {
    await hasEachOnceAndInOrder(person, latest, acks);
    person.client.close();
  }
});
