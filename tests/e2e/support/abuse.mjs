/**
 * A table of attacks. Each row has an attacker and a victim; what the victim notices is asserted in every row, what the
 * attacker gets in each row's own `check`.
 *
 *   row: { name, attack: { kind, … } (support/attacker.mjs), ms, check({ attack, victim, server }), users?, prepare? }
 *
 * The victim sends messages to a friend and heartbeats, before the attack and during it, in the same run. All must be
 * answered, and the median of their round trips may grow by a bounded factor.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { makeChat, sendMessage } from './chats.mjs';
import { closeAll, connect, devToken } from './client.mjs';
import { befriend } from './contacts.mjs';
import { startServer } from './server.mjs';

/** How much slower a victim may be served, and below which time nobody notices. */
export const SLOWDOWN_MAX = 15;
const UNNOTICED_MS = 20;
const ROUNDS_BEFORE = 15;
const ROUND_PAUSE_MS = 150;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Two friends with a chat of their own. */
class Victim {
  constructor(name) {
    this.name = name;
    this.friend = `${name}-friend`;
    this.chat = `${name}-chat`;
  }

  async arrive(server) {
    await befriend(server, this.name, this.friend);
    await makeChat(server, this.chat, this.name, this.friend);
    this.client = await connect(server, this.name);
    this.friendClient = await connect(server, this.friend);
  }

  /** One message to the friend and one heartbeat; returns the time that each took. */
  async round() {
    const startedMs = performance.now();
    const ack = await sendMessage(this.client, this.chat, 'hello');
    assert.equal(ack.type, 'message_ack', `${ack.code}`);
    await this.friendClient.next(({ type, sequence }) => type === 'message' && sequence === ack.sequence);
    const sentMs = performance.now();
    assert.equal((await this.client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
    return [sentMs - startedMs, performance.now() - sentMs];
  }

  async rounds(isOver) {
    const times = [];
    while (!isOver(times.length)) {
      times.push(await this.round());
      await sleep(ROUND_PAUSE_MS);
    }
    return { message: median(times.map(([ms]) => ms)), heartbeat: median(times.map(([, ms]) => ms)) };
  }
}

/** Starts the attack; `done` is a promise of its summary. */
async function startAttack(server, attacker, row) {
  const workerData = { ...row.attack, ms: row.ms, url: server.url, token: await devToken(server, attacker) };
  const worker = new Worker(new URL('./attacker.mjs', import.meta.url), { workerData });
  await once(worker, 'message');
  return { done: once(worker, 'message').then(([summary]) => summary) };
}

function expectUnharmed(before, during) {
  for (const kind of ['message', 'heartbeat']) {
    const slowest = SLOWDOWN_MAX * Math.max(before[kind], UNNOTICED_MS);
    assert.ok(
      during[kind] <= slowest,
      `${kind}: ${during[kind].toFixed(1)} ms during the attack, ${before[kind].toFixed(1)} ms before`,
    );
  }
}

async function runRow(server, index, row) {
  const victim = new Victim(`victim-${index}`);
  const attacker = `attacker-${index}`;
  await victim.arrive(server);
  await row.prepare?.({ server, victim, attacker });
  const calm = await victim.rounds((count) => count === ROUNDS_BEFORE);
  const attack = await startAttack(server, attacker, row);
  let summary;
  const finished = attack.done.then((result) => {
    summary = result;
  });
  const attacked = await victim.rounds((count) => summary !== undefined && count > 0);
  await finished;
  expectUnharmed(calm, attacked);
  await row.check({ attack: summary, seconds: summary.ms / 1000, server, victim, attacker });
  assert.equal((await victim.client.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
}

/** Declares a test for each row, all on one server. */
export function abuse(rows, { settings = {}, args = ['--workers', '2'] } = {}) {
  let server;
  before(async () => {
    server = await startServer({ args, settings });
  });
  after(async () => {
    closeAll();
    await server.stop();
  });
  for (const [index, row] of rows.entries()) test(row.name, () => runRow(server, index, row));
}
