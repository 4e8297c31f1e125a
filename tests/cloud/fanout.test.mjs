/**
 * Fan-out as processes of its own: two gateways that do not consume, two `rollcall fanout`, on a real Kafka and a real
 * Redis. Messages arrive once whoever dies; what cannot be delivered becomes a dead letter.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, afterEach, before, test } from 'node:test';
import { promisify } from 'node:util';
import { AMPLE_RATES, history, makeChat } from '../e2e/support/chats.mjs';
import { closeAll, eventually, metric, SOON_MS } from '../e2e/support/client.mjs';
import { isReady, joinFleet, sendUntilAcked, startFleet } from '../e2e/support/fleet.mjs';
import { startRedis } from '../e2e/support/redis.mjs';
import { NO_BUDGETS, residentBytes, rollcall } from '../e2e/support/server.mjs';
import { startKafka } from './support/cloud_servers.mjs';
import { startFanout } from './support/fanout_server.mjs';

const execute = promisify(execFile);

/** The least that a broker accepts by default: after it a killed consumer's partitions go to others. */
const SESSION_MS = 6000;
/** A rebalance on a busy machine. */
const TAKEOVER_MS = 90000;
const TOPIC = 'messages.persisted';

const FEED = { 'durability.kafka.partitions': 4, 'durability.kafka.replication': 1 };
const CONSUMER = { ...FEED, 'fanout.kafka.consumer.session_timeout_ms': SESSION_MS };

let kafka;
let redis;
let fleet;
let one;
let two;
const fanouts = new Map();

async function startWorker(name) {
  const where = { state: redis.url, ledger: fleet.ledger.url, feed: kafka.url };
  const fanout = await startFanout({ name, ...where, settings: CONSUMER });
  fanouts.set(name, fanout);
  return fanout;
}

const allReady = () =>
  eventually(async () => {
    for (const fanout of fanouts.values()) if (!(await isReady(fanout))) return false;
    return true;
  }, 'all fan-out processes are ready', TAKEOVER_MS);

/** The sum of a metric over all fan-out processes. */
async function total(name) {
  let sum = 0;
  for (const fanout of fanouts.values()) sum += await metric(fanout, name);
  return sum;
}

/** Publishes a record as a foreign program would. */
async function produce(lines, key = 'foreign') {
  const kcat = spawn('kcat', ['-P', '-b', kafka.addresses, '-t', TOPIC, '-k', key, '-X', 'acks=all'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  kcat.stdin.end(lines.map((line) => `${line}\n`).join(''));
  const [code] = await once(kcat, 'exit');
  assert.equal(code, 0);
}

let chats = 0;
/** A chat of alice on the first gateway and bob on the second. */
async function meet() {
  chats += 1;
  const chat = `meeting-${chats}`;
  const [alice, bob] = [`alice-${chats}`, `bob-${chats}`];
  await makeChat(one, chat, alice, bob);
  return { chat, alice: await joinFleet(one, alice), bob: await joinFleet(two, bob), names: { alice, bob } };
}

const numbers = (count, from = 0) => Array.from({ length: count }, (_, n) => `n${n + from}`);

async function sendAll(client, chat, bodies) {
  for (const body of bodies) await sendUntilAcked(client, chat, body, TAKEOVER_MS);
}

/** Waits until the client has received exactly these bodies, each once, in any order. */
async function receives(client, bodies, limitMs = TAKEOVER_MS) {
  await eventually(() => bodies.every((body) => client.bodies().includes(body)), 'all messages arrive', limitMs);
  assert.deepEqual([...client.bodies()].sort(), [...bodies].sort());
}

before(async () => {
  [kafka, redis] = await Promise.all([startKafka(), startRedis()]);
  const settings = Object.entries(FEED).flatMap(([name, value]) => ['--set', `${name}=${value}`]);
  const create = () => rollcall('topics', 'create', '--feed', kafka.url, ...settings);
  await eventually(async () => (await create()).code === 0, 'the topics exist', TAKEOVER_MS);
  fleet = await startFleet({
    redis,
    operations: true,
    settings: { ...FEED, ...AMPLE_RATES, ...NO_BUDGETS, 'feed.url': kafka.url, 'fanout.in_gateway': false },
  });
  [one, two] = fleet.gateways;
  await startWorker('fanout-1');
  await startWorker('fanout-2');
  await allReady();
});

afterEach(closeAll);

after(async () => {
  for (const fanout of fanouts.values()) await fanout.stop('SIGKILL');
  await fleet?.stop();
  await redis?.stop();
  await kafka?.stop();
});

test('messages arrive on the other gateway, and no gateway consumes', async () => {
  const { chat, alice, bob } = await meet();
  const done = await total('fanout_events_done');
  await sendAll(alice, chat, numbers(20));
  await receives(bob, numbers(20));
  await eventually(async () => (await total('fanout_events_done')) >= done + 20, 'all are settled');
  for (const { operations } of fleet.gateways) {
    assert.equal(await metric(operations, 'fanout_events_done'), 0);
    assert.equal(await metric(operations, 'fanout_messages_sent'), 0);
  }
  await eventually(
    async () => (await metric(two.operations, 'fanout_messages_delivered')) >= 20, 'the receiving gateway counts them');
  assert.equal(await total('fanout_delivery_skipped'), 0);
});

test('a killed fan-out process is replaced by the other, and no message is lost', async () => {
  const { chat, alice, bob, names } = await meet();
  await sendAll(alice, chat, numbers(10));
  await fanouts.get('fanout-1').stop('SIGKILL');
  fanouts.delete('fanout-1');
  await sendAll(alice, chat, numbers(50, 10));
  await receives(bob, numbers(60));
  const stored = await history(two, names.bob, chat, '?limit=100');
  assert.deepEqual(stored.body.messages.map(({ sequence }) => sequence), numbers(60).map((_, n) => n + 1));
  await startWorker('fanout-1');
  await allReady();
});

test('what is in Kafka is fanned out while the ledger is dead, to members that are remembered', async () => {
  const { chat, alice, bob } = await meet();
  await sendAll(alice, chat, numbers(5));
  await receives(bob, numbers(5));
  for (const { pid } of fanouts.values()) process.kill(pid, 'SIGSTOP');
  await sendAll(alice, chat, numbers(3, 5));
  await fleet.ledger.stop('SIGKILL');
  for (const { pid } of fanouts.values()) process.kill(pid, 'SIGCONT');
  await receives(bob, numbers(8));
  await fleet.ledger.start();
  await sendAll(alice, chat, numbers(5, 8));
  await receives(bob, numbers(13));
});

test('a drained fan-out process gives its partitions up and exits with 0', async () => {
  const { chat, alice, bob } = await meet();
  const drained = fanouts.get('fanout-2');
  await sendAll(alice, chat, numbers(10));
  assert.equal(await drained.stop(), 0);
  assert.match(drained.log(), /event=draining[^]*change=revoked[^]*event=stopped/);
  fanouts.delete('fanout-2');
  await sendAll(alice, chat, numbers(10, 10));
  await receives(bob, numbers(20));
  await startWorker('fanout-2');
  await allReady();
});

test('the messages of killed gateways are neither lost nor stored twice', async () => {
  const { chat, alice, names } = await meet();
  const victim = await fleet.start('gw-003');
  const storm = await joinFleet(victim, names.bob);
  const acknowledged = [];
  storm.socket.on('message', (data) => {
    const message = JSON.parse(data);
    if (message.type === 'message_ack') acknowledged.push(message);
  });
  for (const body of numbers(200))
    storm.send({ type: 'send_message', chat_id: chat, client_message_id: `storm-${body}`, body });
  await eventually(() => acknowledged.length > 20, 'some are acknowledged', TAKEOVER_MS);
  await fleet.crash(victim);
  const back = await joinFleet(two, names.bob);
  for (const body of numbers(200)) {
    const again = { type: 'send_message', chat_id: chat, client_message_id: `storm-${body}`, body };
    await eventually(async () => (await back.ask({ ...again })).type === 'message_ack', `${body} is acknowledged`, TAKEOVER_MS);
  }
  const { messages } = (await history(one, names.alice, chat, '?limit=500')).body;
  assert.deepEqual(messages.map(({ body }) => body).sort(), numbers(200).sort());
  assert.deepEqual(messages.map(({ sequence }) => sequence).sort((a, b) => a - b), numbers(200).map((_, n) => n + 1));
  for (const ack of acknowledged)
    assert.ok(messages.some(({ sequence, message_id }) => sequence === ack.sequence && message_id === ack.message_id));
  await receives(alice, numbers(200));
});

test('garbage and events of an unknown chat become dead letters, and the flow goes on', async () => {
  const { chat, alice, bob, names } = await meet();
  const lost = `lost-${chats}`;
  const event = {
    version: 1, type: 'message_persisted', chat_id: lost, message_id: '01ARYZ6S41TSV4RRFFQ69G5FAV', sequence: 1,
    sender_id: names.alice, body: 'found again', sent_at_ms: Date.now(),
  };
  await produce(['this is no event', JSON.stringify(event)]);
  await sendAll(alice, chat, numbers(5));
  await receives(bob, numbers(5));
  const list = async () => (await rollcall('dead-letters', '--feed', kafka.url)).stdout.trim().split('\n').filter(Boolean);
  await eventually(async () => (await list()).length === 2, 'both are dead letters', TAKEOVER_MS);
  const letters = await list();
  assert.ok(letters.some((line) => line.includes('there is no such chat')), letters.join('\n'));
  await eventually(async () => (await total('fanout_dead_letters')) >= 2, 'both are counted');
  await eventually(async () => (await metric([...fanouts.values()][0], 'fanout_dlq_depth')) === 2, 'the depth is shown', SOON_MS);

  await makeChat(one, lost, names.alice, names.bob);
  const [id] = letters.find((line) => line.includes('there is no such chat')).split('\t');
  const replayed = await rollcall('dead-letters', '--feed', kafka.url, 'replay', id);
  assert.equal(replayed.code, 0, replayed.stderr);
  await eventually(() => bob.bodies().includes('found again'), 'the replayed message arrives', TAKEOVER_MS);
});

test('a gateway that consumes fans out too, and shows the depth of the dead letters', async () => {
  const consuming = await fleet.start('gw-004', { settings: { 'fanout.in_gateway': true } });
  await eventually(async () => (await metric(consuming.operations, 'fanout_dlq_depth')) === 2, 'the depth is shown');
  for (const fanout of fanouts.values()) await fanout.stop();
  const { chat, alice, bob } = await meet();
  await sendAll(alice, chat, numbers(10));
  await receives(bob, numbers(10));
  await eventually(async () => (await metric(consuming.operations, 'fanout_events_done')) >= 10, 'all are settled');
  for (const name of fanouts.keys()) await startWorker(name);
  assert.equal(await consuming.stop(), 0);
  await allReady();
});

test('dead letters that nobody wants are dropped', async () => {
  const drop = (...ids) => rollcall('dead-letters', '--feed', kafka.url, 'drop', ...ids);
  const list = async () => (await rollcall('dead-letters', '--feed', kafka.url)).stdout.trim().split('\n').filter(Boolean);
  assert.equal((await drop('9999:1')).code, 1);
  assert.equal((await drop('nonsense')).code, 2);
  const letters = await list();
  assert.equal(letters.length, 2);
  const dropped = await drop();
  assert.deepEqual([dropped.code, dropped.stdout], [0, '2 dropped\n'], dropped.stderr);
  assert.deepEqual(await list(), []);
  assert.equal((await drop('all')).stdout, '0 dropped\n');
});

test('without Redis messages go by peer links', async () => {
  const { chat, alice, bob } = await meet();
  await eventually(async () => (await total('peer_links_open')) >= 2 * fanouts.size, 'all are linked');
  await sendAll(alice, chat, ['with']);
  await receives(bob, ['with']);
  await redis.kill();
  await sendAll(alice, chat, ['without']);
  await receives(bob, ['with', 'without']);
  for (const fanout of fanouts.values()) await eventually(async () => !(await isReady(fanout)), 'it is not ready');
  await redis.start();
  await allReady();
});

/** While the ledger is stopped, members cannot be read and events wait, in Kafka, not in memory. */
test('a burst waits in Kafka: the lag rises and falls, and memory stays', async () => {
  const BURST = 50000;
  const BODY_BYTES = 2000;
  const { chat, names, bob } = await meet();
  const fanout = [...fanouts.values()];
  const before = await Promise.all(fanout.map(residentBytes));
  process.kill(fleet.ledger.pid, 'SIGSTOP');
  try {
    const body = 'x'.repeat(BODY_BYTES);
    await produce(numbers(BURST).map((_, n) => JSON.stringify({
      version: 1, type: 'message_persisted', chat_id: chat, message_id: '01ARYZ6S41TSV4RRFFQ69G5FAV', sequence: n + 1,
      sender_id: names.alice, body, sent_at_ms: Date.now(),
    })), chat);
    await eventually(async () => (await total('fanout_kafka_consumer_lag')) > BURST / 2, 'the lag rises', TAKEOVER_MS);
    const after = await Promise.all(fanout.map(residentBytes));
    for (const [n, bytes] of after.entries()) assert.ok(bytes - before[n] < (BURST * BODY_BYTES) / 2, `${before[n]} → ${bytes} bytes`);
  } finally {
    process.kill(fleet.ledger.pid, 'SIGCONT');
  }
  await eventually(async () => (await total('fanout_kafka_consumer_lag')) === 0, 'the lag falls', 2 * TAKEOVER_MS);
  await sendUntilAcked(await joinFleet(one, names.alice), chat, 'after the burst', TAKEOVER_MS);
  await eventually(() => bob.bodies().includes('after the burst'), 'new messages arrive', TAKEOVER_MS);
});
