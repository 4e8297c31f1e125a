/**
 * Three real brokers that replicate, two gateways and a fan-out process: brokers are killed while users send. What was
 * acknowledged is stored once and reaches every recipient who is online; requests fail in time when too few brokers are
 * left, and go on by themselves when there are enough again. Several minutes long.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, afterEach, before, test } from 'node:test';
import { promisify } from 'node:util';
import { AMPLE_RATES, makeChat } from '../e2e/support/chats.mjs';
import { closeAll, connect, eventually, sleep } from '../e2e/support/client.mjs';
import { isHealthy, isReady, startFleet } from '../e2e/support/fleet.mjs';
import { startRedis } from '../e2e/support/redis.mjs';
import { rollcall } from '../e2e/support/server.mjs';
import { startKafka } from '../cloud/support/cloud_servers.mjs';
import { startFanout } from '../cloud/support/fanout_server.mjs';
import { Storm } from './support/storm.mjs';

const execute = promisify(execFile);

/** The time limit of a send (gateway.timeouts.durability_rpc_seconds), and how late a busy machine may be. */
const SEND_LIMIT_MS = 5000;
const LATE_MS = 5000;
/** Elections, rebalances and starts of brokers on a busy machine. */
const PATIENT_MS = 120000;
const STEADY_MS = 3000;
const OUTAGE_MS = 15000;

const PARTITIONS = 6;
const CHATS = 12;
const SETTINGS = {
  'durability.kafka.partitions': PARTITIONS,
  'durability.kafka.replication': 3,
  'fanout.kafka.consumer.session_timeout_ms': 6000,
};

let kafka;
let redis;
let fleet;
let fanout;

const set = (settings) => Object.entries(settings).flatMap(([name, value]) => ['--set', `${name}=${value}`]);

/** Whether every partition has all three replicas in sync. */
async function isReplicated() {
  const { stdout } = await execute('kcat', ['-b', kafka.addresses, '-L', '-J', '-m', '10']).catch(() => ({ stdout: '{}' }));
  const partitions = (JSON.parse(stdout || '{}').topics ?? []).flatMap((topic) => topic.partitions);
  return partitions.length > PARTITIONS && partitions.every(({ isrs }) => isrs.length === 3);
}

const replicated = () => eventually(isReplicated, 'all replicas are in sync', PATIENT_MS);

before(async () => {
  [kafka, redis] = await Promise.all([startKafka({ count: 3 }), startRedis()]);
  const create = () => rollcall('topics', 'create', '--feed', kafka.url, ...set(SETTINGS));
  await eventually(async () => (await create()).code === 0, 'the topics exist', PATIENT_MS);
  fleet = await startFleet({ redis, settings: { ...SETTINGS, ...AMPLE_RATES, 'feed.url': kafka.url } });
  fanout = await startFanout({
    name: 'fanout-1', state: redis.url, ledger: fleet.ledger.url, feed: kafka.url, settings: SETTINGS,
  });
  await eventually(() => isReady(fanout), 'the fan-out process is ready', PATIENT_MS);
});

afterEach(closeAll);

after(async () => {
  await fanout?.stop('SIGKILL');
  await fleet?.stop();
  await redis?.stop();
  await kafka?.stop();
});

let storms = 0;
/** Starts a storm of four users on both gateways, with a reader on each. */
async function startStorm() {
  storms += 1;
  const named = (name) => `${name}-${storms}`;
  const chats = Array.from({ length: CHATS }, (_, n) => named(`chat-${n}`));
  const members = ['ann', 'ben', 'cat', 'dan', 'reader', 'other-reader'].map(named);
  for (const chat of chats) await makeChat(fleet.gateways[0], chat, ...members);
  const storm = new Storm(chats);
  for (const [index, user] of members.slice(0, 4).entries()) await storm.addSender(fleet.gateways[index % 2], user);
  for (const [index, user] of members.slice(4).entries()) await storm.addReader(fleet.gateways[index], user);
  storm.begin();
  await eventually(() => storm.isAcknowledgedEverywhere(0), 'the storm has begun', PATIENT_MS);
  await sleep(STEADY_MS);
  return storm;
}

/** Ends the storm and asserts what must hold whatever has happened. */
async function endStorm(storm, t) {
  await storm.end(PATIENT_MS);
  const stored = await storm.assertStored();
  await eventually(() => storm.missing(stored).length === 0, 'every online recipient has every message', PATIENT_MS).catch((error) => {
    throw new Error(`${error.message}; missing: ${storm.missing(stored).slice(0, 10)}`);
  });
  const failed = storm.since(0, 'error');
  assert.deepEqual([...new Set(failed.map(({ answer }) => answer.code))].filter((code) => code !== 'SERVICE_UNAVAILABLE'), []);
  const longestMs = storm.answers.reduce((longest, { tookMs }) => Math.max(longest, tookMs), 0);
  assert.ok(longestMs <= SEND_LIMIT_MS + LATE_MS, `an answer took ${longestMs} ms`);
  for (const server of fleet.gateways) assert.ok(server.child.exitCode === null && (await isHealthy(server)));
  assert.ok(await isHealthy(fanout));
  const count = [...stored.values()].flat().length;
  t.diagnostic(`${count} messages, ${failed.length} failed sends repeated, longest answer ${longestMs} ms`);
}

/** Sends go on in every chat with two brokers; the time until then is what a failover costs. */
async function survives(storm, broker, t) {
  const killedMs = Date.now();
  await broker.kill();
  await eventually(() => storm.isAcknowledgedEverywhere(killedMs + 1), 'two brokers acknowledge', PATIENT_MS);
  t.diagnostic(`all chats go on ${Date.now() - killedMs} ms after the broker's death`);
  await sleep(STEADY_MS);
  await broker.start();
  await sleep(STEADY_MS);
}

test('a broker dies and comes back: sends go on, and nothing acknowledged is lost', async (t) => {
  await replicated();
  const storm = await startStorm();
  const controller = await kafka.controller();
  await survives(storm, kafka.brokers.find((broker) => broker !== controller), t);
  await endStorm(storm, t);
});

test('the controller dies and comes back: sends go on, and nothing acknowledged is lost', async (t) => {
  await replicated();
  const storm = await startStorm();
  await survives(storm, await kafka.controller(), t);
  await endStorm(storm, t);
});

test('two of three brokers die: sends fail in time and none is acknowledged; one comes back: they go on', async (t) => {
  await replicated();
  const storm = await startStorm();
  const victims = kafka.brokers.slice(1);
  await Promise.all(victims.map((broker) => broker.kill()));
  const deadMs = Date.now() + 1;
  await sleep(OUTAGE_MS);
  await eventually(() => storm.since(deadMs, 'error').length > 0, 'sends fail', PATIENT_MS);
  assert.equal(storm.since(deadMs, 'message_ack').length, 0, 'one broker of three acknowledges nothing');
  const newcomer = await connect(fleet.gateways[0], 'newcomer');
  assert.equal((await newcomer.query('newcomer'))[0].status, 'online', 'presence and connections go on');

  const backMs = Date.now();
  await victims[0].start();
  await eventually(() => storm.isAcknowledgedEverywhere(backMs), 'two brokers acknowledge again', PATIENT_MS);
  t.diagnostic(`all chats go on ${Date.now() - backMs} ms after the start of the second broker`);
  await victims[1].start();
  await endStorm(storm, t);
});
