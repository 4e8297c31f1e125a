/**
 * Clients connect, disconnect and call at random while gateways crash and Redis is flushed, and the invariants
 * are checked on the live Redis all the time. $CHURN_SECONDS is the duration (15; `make soak` runs 300),
 * $CHURN_SEED repeats a run.
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
const CALLERS = 8; // the first users, each a friend of the next, call each other
const FIRST_CALL_MS_MAX = 60_000; // a busy machine may take this much longer to get to a call

const nameOf = (n) => `churn-${n}`;

/** Accepts, rejects or ignores calls at random; keeps the id of the last one. */
function answerCalls(client, random) {
  client.socket.on('message', (data) => {
    const { type, call_id: id } = JSON.parse(data);
    if (type === 'call_incoming' || type === 'call_ringing') client.callId = id;
    if (type === 'call_incoming' && random() < 0.7 && client.socket.readyState === 1)
      client.send({ type: random() < 0.8 ? 'call_accept' : 'call_reject', call_id: id });
  });
}

/** The relative frequency of each step. */
const WEIGHTS = { arrive: 50, leave: 40, idle: 20, call: 20, hangUp: 10, crash: 1, flush: 0.3 };
const WEIGHTED_STEPS = Object.entries(WEIGHTS).flatMap(([name, weight]) => Array(Math.ceil(weight * 10)).fill(name));

const isRunning = ({ child }) => child.exitCode === null && child.signalCode === null;

/** The steps a run consists of; `clients` are those connected. */
function makeSteps({ fleet, redis, random, clients }) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const pickOpen = (likelihood, matches) =>
    [...clients].find((client) => matches(client) && client.socket.readyState === 1 && random() < likelihood);
  const steps = {
    crashes: 0,

    next: () => steps[pick(WEIGHTED_STEPS)](),

    async arrive() {
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

    leave() {
      if (clients.size === 0) return;
      const client = pick([...clients]);
      clients.delete(client);
      if (random() < 0.5) client.socket.close();
      else client.terminate();
    },

    idle: () => clients.size && pick([...clients]).socket.send('{"type":"heartbeat","active":false}'),

    call() {
      const client = pickOpen(0.3, ({ friend }) => friend);
      client?.send({ type: 'call_request', to: client.friend });
    },

    hangUp() {
      const client = pickOpen(0.5, ({ callId }) => callId);
      client?.send({ type: 'call_end', call_id: client.callId });
    },

    async crash() {
      if (steps.crashes >= SECONDS / 5) return;
      steps.crashes += 1;
      const server = await fleet.start(`gw-crash-${steps.crashes}`);
      for (let n = 0; n < 5; n += 1) await steps.arrive();
      await fleet.crash(server);
    },

    flush: () => redis.flush?.() ?? redis.command('FLUSHALL'),
  };
  return steps;
}

/** Checks the invariants repeatedly while `found.churning`; counts the checks and the calls in Redis. */
async function checkWhileChurning(found, redis) {
  while (found.churning) {
    found.calls += (await redis.keys('call:*')).length;
    await assertInvariants(redis, QUICK_WINDOW_MS);
    found.checks += 1;
  }
}

for (const [kind, { start, key }] of Object.entries(BACKENDS))
  describe(`churn on ${kind}`, () => {
    test(`the invariants hold throughout (seed ${SEED})`, { timeout: (SECONDS + 90) * 1000 + FIRST_CALL_MS_MAX }, async (t) => {
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
      const found = { churning: true, checks: 0, calls: 0 };
      const endMs = Date.now() + SECONDS * 1000;
      const checking = checkWhileChurning(found, redis).finally(() => (found.churning = false));
      while (found.churning && Date.now() < (found.calls > 0 ? endMs : endMs + FIRST_CALL_MS_MAX)) {
        if (clients.size >= CLIENTS_MAX) steps.leave();
        await steps.next();
        await sleep(random() * 40);
      }
      found.churning = false;
      await checking;

      for (const client of clients) client.socket.close();
      await eventually(async () => (await redis.keys('connection:*')).length === 0, 'no connection is left in Redis');
      for (let n = 0; n < USERS; n += 1) // the reaper removes the connections of crashed gateways
        await eventually(
          async () => (await redis.command('SCARD', key('user_connections', nameOf(n)))) === 0,
          `${nameOf(n)} has no connections`,
          QUICK_WINDOW_MS,
        );
      assert.ok(await isReady(fleet.gateways[0]));
      assert.ok(found.calls > 0, 'there were calls');
      t.diagnostic(`${found.checks} checks, ${steps.crashes} crashes, ${found.calls} calls seen`);
    });
  });
