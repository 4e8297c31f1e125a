/** Gateways that share the tables are killed while users send: no acknowledged message is lost, none is stored twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { makeChat, sendMessage } from '../e2e/support/chats.mjs';
import { connect, rest, sleep } from '../e2e/support/client.mjs';
import { createTables, startDynamodbWithProxy, startOnDynamodb } from './support/dynamodb_gateway.mjs';

const PREFIX = 'storm-';
const ROUNDS = 4;
const ROUND_MS = 2500;
const AT_ONCE = 10;
const PAGE = 500;

/** Sends until `isOver`; `sent` are all ids, `acks` those acknowledged with what the server said. */
class Sender {
  constructor(user) {
    this.user = user;
    this.sent = [];
    this.acks = new Map();
  }

  /** Waits for an answer, or for the end of the connection. */
  async send(client, chat, id) {
    const answer = await Promise.race([sendMessage(client, chat, id, id), client.closed.then(() => undefined)]).catch(() => undefined);
    if (answer?.type !== 'message_ack') return;
    const before = this.acks.get(id);
    if (before !== undefined) assert.equal(answer.sequence, before, `${id} has two sequences`);
    this.acks.set(id, answer.sequence);
  }

  /** Sends what was not acknowledged, then new messages, several at a time. */
  async storm(server, chat, isOver) {
    const client = await connect(server, this.user).catch(() => undefined);
    if (client === undefined) return;
    const open = this.sent.filter((id) => !this.acks.has(id));
    const lane = async () => {
      while (!isOver()) {
        const id = open.pop() ?? `${this.user}-${this.sent.length}`;
        if (!this.sent.includes(id)) this.sent.push(id);
        await this.send(client, chat, id);
        if (client.socket.readyState !== client.socket.OPEN) return;
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    client.terminate();
  }

  async finish(server, chat) {
    const client = await connect(server, this.user);
    for (const id of this.sent) if (!this.acks.has(id)) await this.send(client, chat, id);
    for (const id of this.sent) assert.ok(this.acks.has(id), `${id} is not acknowledged`);
  }
}

async function readAll(server, chat) {
  const messages = [];
  for (let page = { has_more: true }; page.has_more; messages.push(...page.messages)) {
    const path = `/v1/chats/${chat}/messages?limit=${PAGE}&after_sequence=${messages.length}`;
    page = (await rest(server, 'GET', path, { user: 'alice' })).body;
  }
  return messages;
}

test('gateways are killed in a storm of sends: what was acknowledged is stored once, in a dense order', async (t) => {
  const { proxy } = await startDynamodbWithProxy();
  await createTables(proxy, PREFIX);
  const start = () => startOnDynamodb(proxy, { prefix: PREFIX });
  let [one, other] = await Promise.all([start(), start()]);
  await makeChat(one, 'storm', 'alice', 'bob', 'carol');
  const senders = ['alice', 'bob', 'carol'].map((user) => new Sender(user));

  for (let round = 0; round < ROUNDS; round += 1) {
    let isOver = false;
    const storms = senders.map((sender, index) => sender.storm(index % 2 === 0 ? one : other, 'storm', () => isOver));
    await sleep(ROUND_MS);
    await one.stop('SIGKILL');
    isOver = true;
    await Promise.all(storms);
    [one, other] = [other, await start()];
  }
  for (const sender of senders) await sender.finish(one, 'storm');

  const stored = await readAll(one, 'storm');
  assert.deepEqual(stored.map(({ sequence }) => sequence), stored.map((_, index) => index + 1));
  const sequences = new Map(stored.map(({ body: id, sequence }) => [id, sequence]));
  assert.equal(sequences.size, stored.length, 'no message is stored twice');
  for (const { acks } of senders)
    for (const [id, sequence] of acks) assert.equal(sequences.get(id), sequence, `${id} was acknowledged with ${sequence}`);
  const acknowledged = senders.reduce((sum, { acks }) => sum + acks.size, 0);
  assert.equal(acknowledged, stored.length);
  t.diagnostic(`${stored.length} messages, ${ROUNDS} gateways killed`);
});
