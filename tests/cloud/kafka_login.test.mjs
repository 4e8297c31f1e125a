/** A broker that asks for a login: the right password works, a wrong one harms deliveries only, and none is ever logged. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { newChat, sendMessage } from '../e2e/support/chats.mjs';
import { closeAll, connect, eventually, metric } from '../e2e/support/client.mjs';
import { startKafka } from './support/cloud_servers.mjs';
import { createTopics, startOnKafka } from './support/kafka_feed.mjs';

const PATIENT_MS = 120000;
const PASSWORD = 'correct-horse-battery';
const WRONG = 'wrong-staple';
const MODULE = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
const PROPERTIES = `
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.plaintext.plain.sasl.jaas.config=${MODULE} username="rollcall" password="${PASSWORD}" user_rollcall="${PASSWORD}";
`;

let kafka;
let folder;
let login;
let server;

before(async () => {
  kafka = await startKafka({ properties: PROPERTIES });
  folder = await mkdtemp(join(tmpdir(), 'rollcall-login-'));
  await writeFile(join(folder, 'password'), `${PASSWORD}\n`);
  login = {
    'durability.kafka.security.sasl_mechanism': 'plain',
    'durability.kafka.security.username': 'rollcall',
    'durability.kafka.security.password_file': join(folder, 'password'),
  };
  await createTopics(kafka, login);
});
after(async () => {
  await kafka?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  closeAll();
  await server?.stop();
  server = undefined;
});

test('messages flow with the password of a file', async () => {
  server = await startOnKafka(kafka, { settings: login });
  const chatId = await newChat(server, 'alice', 'bob');
  const [alice, bob] = [await connect(server, 'alice'), await connect(server, 'bob')];
  await eventually(
    async () => (await sendMessage(alice, chatId, 'let in', 'id')).type === 'message_ack',
    'the send is acknowledged',
    PATIENT_MS,
  );
  assert.equal((await bob.next('message', PATIENT_MS)).body, 'let in');
  assert.ok(!server.log().includes(PASSWORD));
});

test('with a wrong password the server runs, counts the restarts of its consumer, and logs no password', async () => {
  const settings = { ...login, 'durability.kafka.security.password_file': '', 'durability.kafka.security.password': WRONG };
  server = await startOnKafka(kafka, { settings });
  const alice = await connect(server, 'alice');
  const chatId = await newChat(server, 'alice', 'bob');
  const failed = await sendMessage(alice, chatId, 'shut out', 'id');
  assert.equal(failed.code, 'SERVICE_UNAVAILABLE');
  await eventually(async () => (await metric(server, 'fanout_consumer_restarts')) > 0, 'it starts again', PATIENT_MS);
  assert.match(server.log(), /kafka_consumer_fatal/);
  assert.ok(!server.log().includes(WRONG));
});
