/** Three brokers, of which one is killed while messages are sent: nothing that was acknowledged is lost. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { history, newChat, sendMessage } from '../e2e/support/chats.mjs';
import { closeAll, connect, eventually } from '../e2e/support/client.mjs';
import { startKafka } from './support/cloud_servers.mjs';
import { createTopics, EVENTS, records, startOnKafka } from './support/kafka_feed.mjs';

const PATIENT_MS = 180000;
const MESSAGES = 60;
const KILL_AT = 20;

let kafka;
let server;

before(async () => {
  kafka = await startKafka({ count: 3 });
  await createTopics(kafka);
  server = await startOnKafka(kafka);
});
after(async () => {
  closeAll();
  await server?.stop();
  await kafka?.stop();
});

test('a broker dies during sends: retries are acknowledged, and every message arrives', async () => {
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  for (let n = 1; n <= MESSAGES; n += 1) {
    if (n === KILL_AT) await kafka.brokers[0].kill();
    await eventually(
      async () => (await sendMessage(alice, chatId, `text ${n}`, `id ${n}`)).type === 'message_ack',
      `message ${n} is acknowledged`,
      PATIENT_MS,
    );
  }
  const sequences = new Set((await records(kafka, EVENTS)).map(({ value }) => JSON.parse(value).sequence));
  assert.equal(sequences.size, MESSAGES, 'every acknowledged message is in the topic');
  const received = new Set();
  while (received.size < MESSAGES) received.add((await bob.next('message', PATIENT_MS)).sequence);
  const stored = (await history(server, 'bob', chatId, '?limit=100')).body.messages;
  assert.deepEqual(stored.map(({ sequence }) => sequence), Array.from({ length: MESSAGES }, (_, n) => n + 1));
});
