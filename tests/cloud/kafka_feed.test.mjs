/** The feed on a real Kafka: what happens to messages when brokers fail, and to events that nobody can deliver. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { history, newChat, sendMessage } from '../e2e/support/chats.mjs';
import { closeAll, connect, eventually, metric } from '../e2e/support/client.mjs';
import { rollcall } from '../e2e/support/server.mjs';
import { startKafka } from './support/cloud_servers.mjs';
import { createTopics, DEAD_LETTERS, EVENTS, produce, records, startOnKafka } from './support/kafka_feed.mjs';

const RPC_LIMIT_MS = 5000;
/** How long a delivery may take while a consumer joins its group, on a busy machine. */
const PATIENT_MS = 120000;

let kafka;
let server;
let dataDir;

before(async () => {
  kafka = await startKafka();
  await createTopics(kafka);
  dataDir = await mkdtemp(join(tmpdir(), 'rollcall-feed-'));
  server = await startOnKafka(kafka, { dataDir });
});
after(async () => {
  await server?.stop();
  await kafka?.stop();
  if (dataDir) await rm(dataDir, { recursive: true, force: true });
});
afterEach(closeAll);

const send = (client, chatId, body, id) => sendMessage(client, chatId, body, id);

const isAvailable = async () => (await metric(server, 'durability_kafka_available')) === 1;

async function sendUntilAcked(client, chatId, body, id) {
  let answer;
  await eventually(async () => {
    answer = await send(client, chatId, body, id);
    return answer.type === 'message_ack';
  }, 'the send is acknowledged', PATIENT_MS);
  return answer;
}

test('a server does not start without its topics, and says how to make them', async () => {
  const args = ['--dev', '--listen', '127.0.0.1:0', '--feed', kafka.url, '--set', 'durability.kafka.topic=missing'];
  const { code, stderr } = await rollcall('serve', ...args);
  assert.equal(code, 1);
  assert.match(stderr, /the topic missing cannot be used.*rollcall topics create/);
  const check = await rollcall('topics', 'check', '--feed', kafka.url);
  assert.equal(check.code, 0, check.stderr);
  assert.match(check.stdout, /^messages\.persisted: 4 partitions, 1 replicas$/m);
});

test('a message is acknowledged after it is in the topic, and reaches the other members', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  const ack = await sendUntilAcked(alice, chatId, 'through Kafka', 'first');
  const inTopic = (await records(kafka, EVENTS)).filter(({ key }) => key === chatId);
  assert.equal(inTopic.length, 1);
  const event = JSON.parse(inTopic[0].value);
  assert.deepEqual(
    { ...event, sent_at_ms: undefined, except: undefined, message_id: undefined },
    {
      version: 1, type: 'message_persisted', chat_id: chatId, sequence: 1, sender_id: 'alice', body: 'through Kafka',
      members_version: 1, sent_at_ms: undefined, except: undefined, message_id: undefined,
    },
  );
  assert.equal(event.message_id, ack.message_id);
  const message = await bob.next('message', PATIENT_MS);
  assert.equal(message.body, 'through Kafka');
  await eventually(async () => (await metric(server, 'fanout_kafka_consumer_lag')) === 0, 'nothing lags');
});

test('a repeated send is published again, and the recipient does not see it twice', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  await sendUntilAcked(alice, chatId, 'once', 'same');
  const again = await sendUntilAcked(alice, chatId, 'once', 'same');
  assert.equal(again.duplicate, true);
  assert.equal(again.sequence, 1);
  assert.equal((await records(kafka, EVENTS)).filter(({ key }) => key === chatId).length, 2);
  await sendUntilAcked(alice, chatId, 'marker', 'marker');
  const received = [(await bob.next('message', PATIENT_MS)).body, (await bob.next('message', PATIENT_MS)).body];
  assert.deepEqual(received, ['once', 'marker']);
});

test('while Kafka is down a send fails within its time limit, and a retry publishes once it is back', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  await sendUntilAcked(alice, chatId, 'before', 'before');
  await bob.next('message', PATIENT_MS);
  await kafka.each('kill');
  const started = Date.now();
  const failed = await send(alice, chatId, 'during', 'during');
  const took = Date.now() - started;
  assert.equal(failed.type, 'error');
  assert.equal(failed.code, 'SERVICE_UNAVAILABLE');
  assert.ok(took < RPC_LIMIT_MS + 3000, `the answer took ${took} ms`);
  const stored = (await history(server, 'bob', chatId)).body.messages.map(({ body }) => body);
  assert.deepEqual(stored, ['before', 'during'], 'the message is stored, and a client that syncs gets it');
  await eventually(async () => !(await isAvailable()), 'the gauge shows the outage', PATIENT_MS);
  await alice.ask({ type: 'heartbeat' }); // the connection plane goes on
  await kafka.each('start');
  const ack = await sendUntilAcked(alice, chatId, 'during', 'during');
  assert.equal(ack.duplicate, true);
  assert.equal(ack.sequence, 2);
  assert.equal((await bob.next('message', PATIENT_MS)).body, 'during');
  await eventually(isAvailable, 'the gauge shows the recovery', PATIENT_MS);
});

test('no send is acknowledged while the broker does not report a delivery', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await sendUntilAcked(alice, chatId, 'before', 'before');
  kafka.brokers[0].pause();
  const answer = await send(alice, chatId, 'stalled', 'stalled').finally(() => kafka.brokers[0].resume());
  assert.equal(answer.type, 'error');
  assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
  assert.equal((await sendUntilAcked(alice, chatId, 'stalled', 'stalled')).sequence, 2);
});

test('poison events go to the dead letters, and those behind them are delivered', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  await produce(kafka, EVENTS, chatId, '{"version":99,"type":"message_persisted"}');
  await produce(kafka, EVENTS, chatId, JSON.stringify({
    version: 1, type: 'message_persisted', chat_id: 'no such chat', message_id: 'm', sequence: 1, sender_id: 'alice',
    body: 'lost', sent_at_ms: Date.now(),
  }));
  await sendUntilAcked(alice, chatId, 'behind', 'behind');
  assert.equal((await bob.next('message', PATIENT_MS)).body, 'behind');
  let letters = [];
  await eventually(async () => {
    letters = await records(kafka, DEAD_LETTERS);
    return letters.length >= 2;
  }, 'both are dead letters', PATIENT_MS);
  const [unknown, unroutable] = letters;
  assert.equal(unknown.value, '{"version":99,"type":"message_persisted"}');
  assert.equal(unknown.headers.topic, EVENTS);
  assert.match(unknown.headers.reason, /version/);
  assert.match(unroutable.headers.reason, /no such chat/);
  assert.equal(JSON.parse(unroutable.value).body, 'lost');
  await eventually(async () => (await metric(server, 'fanout_dead_letters')) === 2, 'both are counted');
});

test('what was published while no consumer ran is delivered after the next start', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await sendUntilAcked(alice, chatId, 'first', 'first');
  closeAll();
  assert.equal(await server.stop(), 0);
  server = await startOnKafka(kafka, { dataDir, settings: { 'fanout.in_gateway': false } });
  await sendUntilAcked(await connect(server, 'alice'), chatId, 'while nobody consumed', 'second');
  closeAll();
  await server.stop();
  server = await startOnKafka(kafka, { dataDir });
  const bob = await connect(server, 'bob');
  const bodies = [];
  while (!bodies.includes('while nobody consumed')) bodies.push((await bob.next('message', PATIENT_MS)).body);
});
