/**
 * Users who send messages without pause until the storm is over, each several at a time. A send that fails is repeated
 * with the same id, as clients do. At the end everything is acknowledged, and can be compared with what is stored.
 */
import assert from 'node:assert/strict';
import { rest, sleep, within } from '../../e2e/support/client.mjs';
import { joinFleet } from '../../e2e/support/fleet.mjs';

const AT_ONCE = 4;
const PAUSE_MS = 20;
const PAGE = 500;
/** A request without an answer for this long hangs. */
const HANG_MS = 60000;

class Sender {
  #client;
  #user;
  #chats;
  #failed = [];
  #waiting = new Map();

  /** The ids of all messages, with their chats. */
  sent = new Map();
  /** What was acknowledged: the sequence of each id. */
  acks = new Map();

  constructor(client, user, chats, onAnswer) {
    this.#client = client;
    this.#user = user;
    this.#chats = chats;
    this.onAnswer = onAnswer;
    client.socket.on('message', (data) => {
      const message = JSON.parse(data);
      client.messages.length = 0; // nobody takes them, and there are many
      this.#waiting.get(message.id)?.(message);
    });
  }

  #make() {
    const id = `${this.#user}-${this.sent.size}`;
    this.sent.set(id, this.#chats[this.sent.size % this.#chats.length]);
    return id;
  }

  #ask(id) {
    const answer = new Promise((resolve) => this.#waiting.set(id, resolve)).finally(() => this.#waiting.delete(id));
    this.#client.send({ type: 'send_message', id, chat_id: this.sent.get(id), client_message_id: id, body: id });
    return within(HANG_MS, answer, `an answer to ${id}`);
  }

  async #send(id) {
    const atMs = Date.now();
    const answer = await this.#ask(id);
    this.onAnswer({ chat: this.sent.get(id), atMs, tookMs: Date.now() - atMs, answer });
    if (answer.type === 'message_ack') this.acks.set(id, answer.sequence);
    else this.#failed.push(id);
  }

  /** Sends what has failed, then new messages, until it is over; then what has failed until nothing has. */
  async storm(isOver) {
    const lane = async () => {
      while (!isOver() || this.#failed.length > 0) {
        await this.#send(this.#failed.shift() ?? this.#make());
        await sleep(PAUSE_MS);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
  }
}

export class Storm {
  #senders = [];
  #readers = [];
  #chats;
  #isOver = false;
  #storms;

  /** Every answer: `{ chat, atMs, tookMs, answer }`, with the time at which the request was sent. */
  answers = [];

  constructor(chats) {
    this.#chats = chats;
  }

  async addSender(server, user) {
    const client = await joinFleet(server, user);
    this.#senders.push(new Sender(client, user, this.#chats, (answer) => this.answers.push(answer)));
  }

  async addReader(server, user) {
    this.#readers.push({ user, server, client: await joinFleet(server, user) });
  }

  begin() {
    this.#storms = Promise.all(this.#senders.map((sender) => sender.storm(() => this.#isOver)));
    this.#storms.catch(() => {}); // end() reports it
  }

  /** Ends the storm when all that was sent is acknowledged. */
  async end(limitMs) {
    this.#isOver = true;
    await within(limitMs, this.#storms, 'the acknowledgement of everything that was sent');
  }

  /** The answers to requests sent since this time. */
  since(ms, type) {
    return this.answers.filter(({ atMs, answer }) => atMs >= ms && answer.type === type);
  }

  /** Whether a request sent since this time was acknowledged in every chat. */
  isAcknowledgedEverywhere(ms) {
    return new Set(this.since(ms, 'message_ack').map(({ chat }) => chat)).size === this.#chats.length;
  }

  /** Asserts that what is stored is what was acknowledged: once each, in a dense order. Returns it by chat. */
  async assertStored() {
    const [{ user, server }] = this.#readers;
    const stored = new Map();
    for (const chat of this.#chats) stored.set(chat, await readAll(server, user, chat));
    for (const [chat, messages] of stored) {
      assert.deepEqual(messages.map(({ sequence }) => sequence), messages.map((_, index) => index + 1), `${chat} is dense`);
      const sequences = new Map(messages.map(({ body, sequence }) => [body, sequence]));
      const acknowledged = new Map(this.#senders.flatMap(({ acks, sent }) => [...acks].filter(([id]) => sent.get(id) === chat)));
      assert.equal(sequences.size, messages.length, `${chat} has no message twice`);
      assert.deepEqual(sequences, acknowledged, `${chat} has what was acknowledged`);
    }
    return stored;
  }

  /** What a reader who was online all the time did not receive, by user. */
  missing(stored) {
    return this.#readers.flatMap(({ user, client }) => {
      const received = new Set(client.bodies());
      return [...stored.values()].flat().filter(({ body }) => !received.has(body)).map(({ body }) => `${user}: ${body}`);
    });
  }
}

async function readAll(server, user, chat) {
  const messages = [];
  for (let page = { has_more: true }; page.has_more; messages.push(...page.messages)) {
    const path = `/v1/chats/${chat}/messages?limit=${PAGE}&after_sequence=${messages.length}`;
    page = (await rest(server, 'GET', path, { user })).body;
  }
  return messages;
}
