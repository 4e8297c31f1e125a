/**
 * Random comings and goings with faults among them, and the invariants checked on the live Redis all the
 * while. $CHURN_SECONDS sets for how long (15; `make soak` runs 300), $CHURN_SEED which run it is.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, eventually, sleep } from '../support/client.mjs';
import { assertInvariants, BACKENDS, isReady, keepAlive, QUICK, QUICK_WINDOW_MS, startFleet } from '../support/fleet.mjs';
import { befriend } from '../support/contacts.mjs';
import { seededRandom } from '../support/random.mjs';

const SECONDS = Number(process.env.CHURN_SECONDS ?? 15);
const SEED = Number(process.env.CHURN_SEED ?? Date.now() % 100000);
const USERS = 40;
const CLIENTS_MAX = 60;
const CALLERS = 8; // the first so many, each a friend of the next, call each other

const nameOf = (n) => `churn-${n}`;

/** Answers calls, or not, and remembers the last one. */
function answerCalls(client, random) {
  client.socket.on('message', (data) => {
    const { type, call_id: id } = JSON.parse(data);
    if (type === 'call_incoming' || type === 'call_ringing') client.call = id;
    if (type === 'call_incoming' && random() < 0.7 && client.socket.readyState === 1)
      client.send({ type: random() < 0.8 ? 'call_accept' : 'call_reject', call_id: id });
  });
}

/** How often each step is taken, compared with the others. */
const WEIGHTS = { come: 50, go: 40, idle: 20, ring: 20, hang: 10, crash: 1, flush: 0.3 };
const DECK = Object.entries(WEIGHTS).flatMap(([name, weight]) => Array(Math.ceil(weight * 10)).fill(name));

const isRunning = ({ child }) => child.exitCode === null && child.signalCode === null;

/** What may happen next; `clients` are those who are here. */
function makeSteps({ fleet, redis, random, clients }) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const anyOf = (likelihood, fits) =>
    [...clients].find((client) => fits(client) && client.socket.readyState === 1 && random() < likelihood);
  const steps = {
    crashes: 0,

    next: () => steps[pick(DECK)](),

    async come() {
      const n = Math.floor(random() * USERS);
      const server = pick(fleet.gateways.filter(isRunning));
      const options = random() < 0.1 ? { ws: { autoPong: false } } : {};
      const client = await connect(server, nameOf(n), options).catch(() => undefined);
      if (client === undefined) return;
      clients.add(client);
      if (n < CALLERS) {
        client.friend = nameOf((n + 1) % CALLERS);
        answerCalls(client, random);
      }
      client.socket.on('close', () => clients.delete(client));
      if (random() < 0.8) keepAlive(client, 1000);
    },

    go() {
      if (clients.size === 0) return;
      const client = pick([...clients]);
      clients.delete(client);
      if (random() < 0.5) client.socket.close();
      else client.terminate();
    },

    idle: () => clients.size && pick([...clients]).socket.send('{"type":"heartbeat","active":false}'),

    ring() {
      const client = anyOf(0.3, ({ friend }) => friend);
      client?.send({ type: 'call_request', to: client.friend });
    },

    hang() {
      const client = anyOf(0.5, ({ call }) => call);
      client?.send({ type: 'call_end', call_id: client.call });
    },

    async crash() {
      if (steps.crashes >= SECONDS / 5) return;
      steps.crashes += 1;
      const server = await fleet.start(`gw-crash-${steps.crashes}`);
      for (let n = 0; n < 5; n += 1) await steps.come();
      await fleet.crash(server);
    },

    flush: () => redis.flush?.() ?? redis.command('FLUSHALL'),
  };
  return steps;
}

/** Checks again and again until the time is over: how often, and how many calls it saw. */
async function checkUntil(endMs, redis) {
  let checks = 0;
  let calls = 0;
  while (Date.now() < endMs) {
    calls += (await redis.keys('call:*')).length;
    await assertInvariants(redis, QUICK_WINDOW_MS);
    checks += 1;
  }
  return { checks, calls };
}

for (const [kind, { start, key }] of Object.entries(BACKENDS))
  describe(`churn on ${kind}`, () => {
    test(`the invariants hold throughout (seed ${SEED})`, { timeout: (SECONDS + 90) * 1000 }, async (t) => {
      const random = seededRandom(SEED);
      const redis = await start();
      const fleet = await startFleet({ redis, settings: QUICK });
      const clients = new Set();
      t.after(async () => {
        for (const client of clients) client.terminate();
        await fleet.stop();
        await redis.stop();
      });
      for (let n = 0; n < CALLERS; n += 1)
        await befriend(fleet.gateways[0], nameOf(n), nameOf((n + 1) % CALLERS));

      const steps = makeSteps({ fleet, redis, random, clients });
      const endMs = Date.now() + SECONDS * 1000;
      const checking = checkUntil(endMs, redis);
      while (Date.now() < endMs) {
        if (clients.size >= CLIENTS_MAX) steps.go();
        await steps.next();
        await sleep(random() * 40);
      }
      const { checks, calls } = await checking;

      for (const client of clients) client.socket.close();
      await eventually(async () => (await redis.keys('connection:*')).length === 0, 'all are gone');
      for (let n = 0; n < USERS; n += 1) // of who died with a gateway the next reaping takes what is left
        await eventually(
          async () => (await redis.command('SCARD', key('user_connections', nameOf(n)))) === 0,
          `${nameOf(n)} without connections`,
          QUICK_WINDOW_MS,
        );
      assert.ok(await isReady(fleet.gateways[0]));
      assert.ok(calls > 0, 'there were calls');
      t.diagnostic(`${checks} checks, ${steps.crashes} crashes, ${calls} calls seen`);
    });
  });
