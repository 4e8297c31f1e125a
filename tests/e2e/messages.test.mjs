/** Messages: acknowledged means durable and delivered everywhere, and every failure has its contract. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import {
  closeAll,
  connect,
  devToken,
  eventually,
  openSocket,
  rest,
  setVisibility,
  sleep,
} from './support/client.mjs';
import { ledgerPath, sql } from './support/ledger.mjs';
import { startServer } from './support/server.mjs';

/** The default limits. */
const BURST = 20;
const BODY_BYTES_MAX = 4096;
const PAGE_DEFAULT = 100;
const PAGE_MAX = 500;

const AMPLE = {
  'gateway.backpressure.inbound.rate_limit_per_second': 100000,
  'gateway.backpressure.inbound.rate_limit_burst': 100000,
  'gateway.backpressure.inbound.command_rate_per_second': 100000,
  'gateway.backpressure.inbound.command_rate_burst': 100000,
};

let server;
let chatNumber = 0;
let idNumber = 0;

before(async () => {
  server = await startServer({ settings: { ...AMPLE, 'gateway.workers': 2 } });
});

after(() => server.stop());
afterEach(closeAll);

const uniqueId = () => `m-${(idNumber += 1)}`;

async function newChat(creator, ...members) {
  const chatId = `chat-${(chatNumber += 1)}`;
  const { status } = await rest(server, 'POST', '/v1/chats', {
    user: creator,
    body: { chat_id: chatId, members },
  });
  assert.equal(status, 201);
  return chatId;
}

const sendMessage = (client, chatId, body, clientMessageId = uniqueId()) =>
  client.ask({
    type: 'send_message',
    chat_id: chatId,
    client_message_id: clientMessageId,
    body,
  });

const post = (user, chatId, body, where = server) =>
  rest(where, 'POST', `/v1/chats/${encodeURIComponent(chatId)}/messages`, { user, body });

const history = (user, chatId, query = '', where = server) =>
  rest(where, 'GET', `/v1/chats/${encodeURIComponent(chatId)}/messages${query}`, { user });

/** Sends `count` messages, a few at a time. */
async function fill(client, chatId, count, body = (n) => `text ${n}`) {
  for (let n = 1; n <= count; n += 50) {
    const some = Array.from({ length: Math.min(50, count - n + 1) }, (_, i) => n + i);
    const acks = await Promise.all(some.map((m) => sendMessage(client, chatId, body(m))));
    for (const ack of acks) assert.equal(ack.type, 'message_ack', JSON.stringify(ack));
  }
}

test('a message is acknowledged, and reaches every other device of every member', async () => {
  const chatId = await newChat('alice', 'bob');
  const sender = await connect(server, 'alice', { device: 'phone' });
  const others = await Promise.all([
    connect(server, 'alice', { device: 'laptop' }),
    connect(server, 'bob', { device: 'phone' }),
    connect(server, 'bob', { device: 'tablet' }),
  ]);
  const stranger = await connect(server, 'mallory');
  const ack = await sendMessage(sender, chatId, 'good morning', 'first');
  assert.deepEqual(
    { ...ack, id: undefined, message_id: undefined },
    {
      type: 'message_ack',
      id: undefined,
      chat_id: chatId,
      client_message_id: 'first',
      message_id: undefined,
      sequence: 1,
      duplicate: false,
    },
  );
  assert.match(ack.message_id, /^[0-9A-HJKMNP-TV-Z]{26}$/);
  for (const other of others) {
    const { sent_at: sentAt, ...message } = await other.next('message');
    assert.deepEqual(message, {
      type: 'message',
      chat_id: chatId,
      message_id: ack.message_id,
      sequence: 1,
      sender_id: 'alice',
      body: 'good morning',
    });
    assert.match(sentAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
  for (const client of [sender, stranger]) {
    const heard = await client.settle();
    assert.ok(!heard.some(({ type }) => type === 'message'), JSON.stringify(heard));
  }
});

test('over REST: 201 with the fields of message_ack, and all devices get it', async () => {
  const chatId = await newChat('alice', 'bob');
  const devices = await Promise.all([connect(server, 'alice'), connect(server, 'bob')]);
  const { status, body } = await post('alice', chatId, { client_message_id: 'r', body: 'hello' });
  assert.equal(status, 201);
  assert.deepEqual(Object.keys(body).sort(), [
    'chat_id',
    'client_message_id',
    'duplicate',
    'message_id',
    'sequence',
  ]);
  for (const device of devices)
    assert.equal((await device.next('message')).message_id, body.message_id);
});

test('the same client_message_id is the same message for ever, per sender and chat', async () => {
  const chatId = await newChat('alice', 'bob');
  const other = await newChat('alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  const first = await sendMessage(alice, chatId, 'once', 'same');
  assert.equal((await bob.next('message')).sequence, 1);

  const again = await sendMessage(alice, chatId, 'once', 'same');
  assert.deepEqual({ ...again, id: first.id }, { ...first, duplicate: true });
  const otherBody = await sendMessage(alice, chatId, 'twice', 'same');
  assert.deepEqual(
    { ...otherBody, id: first.id },
    { ...first, duplicate: true, body_differs: true },
  );
  const overRest = await post('alice', chatId, { client_message_id: 'same', body: 'once' });
  assert.equal(overRest.status, 201);
  assert.equal(overRest.body.duplicate, true);
  assert.equal(overRest.body.message_id, first.message_id);

  assert.equal((await sendMessage(bob, chatId, 'mine', 'same')).sequence, 2);
  assert.equal((await sendMessage(alice, other, 'there', 'same')).sequence, 1);
  const { messages } = (await history('bob', chatId)).body;
  assert.deepEqual(
    messages.map(({ body }) => body),
    ['once', 'mine'],
  );
  const heard = (await bob.settle()).filter(({ type }) => type === 'message');
  assert.deepEqual(
    heard.map(({ body }) => body),
    ['there'],
    'a repetition is not delivered again',
  );
});

test('a hundred devices at once: sequences are dense, everyone has the same order', async () => {
  const chatId = await newChat('alice', 'bob');
  const clients = await Promise.all(
    Array.from({ length: 20 }, (_, i) => connect(server, i % 2 ? 'alice' : 'bob')),
  );
  const acks = await Promise.all(
    clients.flatMap((client) =>
      Array.from({ length: 10 }, () => sendMessage(client, chatId, 'storm')),
    ),
  );
  const sequences = acks.map(({ sequence }) => sequence).sort((a, b) => a - b);
  assert.deepEqual(
    sequences,
    Array.from({ length: 200 }, (_, i) => i + 1),
  );
  const { messages } = (await history('bob', chatId, '?limit=500')).body;
  assert.deepEqual(
    messages.map(({ sequence }) => sequence),
    sequences,
  );
});

test('bad input over WebSocket: a clear error that names the message, the connection stays', async () => {
  const chatId = await newChat('alice', 'bob');
  const alice = await connect(server, 'alice');
  const mallory = await connect(server, 'mallory');
  const send = { type: 'send_message', chat_id: chatId, client_message_id: 'x', body: 'text' };
  const cases = [
    [{ ...send, body: '' }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: undefined }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: 7 }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, body: null }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: '' }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: undefined }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, chat_id: 'c'.repeat(129) }, 'INVALID_MESSAGE', 'x'],
    [{ ...send, client_message_id: '' }, 'INVALID_MESSAGE', ''],
    [{ ...send, client_message_id: undefined }, 'INVALID_MESSAGE', undefined],
    [{ ...send, client_message_id: 'i'.repeat(129) }, 'INVALID_MESSAGE', 'i'.repeat(129)],
    [{ ...send, body: 'b'.repeat(BODY_BYTES_MAX + 1) }, 'MESSAGE_TOO_LARGE', 'x'],
    [{ ...send, body: 'é'.repeat(BODY_BYTES_MAX / 2) + 'b' }, 'MESSAGE_TOO_LARGE', 'x'],
    [{ ...send, chat_id: 'no such chat' }, 'NOT_FOUND', 'x'],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: -1 }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: 1.5 }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId, after_sequence: '1' }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: chatId }, 'INVALID_MESSAGE', undefined],
    [{ type: 'sync_request', chat_id: 'nowhere', after_sequence: 0 }, 'NOT_FOUND', undefined],
    [{ type: 'ack', chat_id: chatId, sequence: -1 }, 'INVALID_MESSAGE', undefined],
  ];
  for (const [command, code, clientMessageId] of cases) {
    const error = await alice.ask(command);
    const what = JSON.stringify({ command, error }).slice(0, 400);
    assert.equal(error.type, 'error', what);
    assert.equal(error.code, code, what);
    assert.equal(error.client_message_id, clientMessageId, what);
  }
  const forbidden = await sendMessage(mallory, chatId, 'let me in', 'y');
  assert.equal(forbidden.code, 'FORBIDDEN');
  assert.equal(forbidden.client_message_id, 'y');
  const unread = await mallory.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(unread.code, 'FORBIDDEN');

  const lone = '{"type":"send_message","id":"s","chat_id":"c","client_message_id":"z","body":"\\ud800"}';
  alice.send(lone);
  assert.equal((await alice.next('error')).code, 'INVALID_MESSAGE');
  const full = await sendMessage(alice, chatId, 'é'.repeat(BODY_BYTES_MAX / 2));
  assert.equal(full.sequence, 1, 'nothing of the above was stored');
});

test('bad input over REST: the fitting status', async () => {
  const chatId = await newChat('alice', 'bob');
  const good = { client_message_id: 'x', body: 'text' };
  const cases = [
    ['alice', chatId, { ...good, body: '' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, body: 5 }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { body: 'text' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, client_message_id: '' }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, client_message_id: 'i'.repeat(129) }, 400, 'INVALID_MESSAGE'],
    ['alice', chatId, { ...good, body: 'b'.repeat(BODY_BYTES_MAX + 1) }, 413, 'MESSAGE_TOO_LARGE'],
    ['alice', 'c'.repeat(129), good, 400, 'INVALID_MESSAGE'],
    ['alice', 'no such chat', good, 404, 'NOT_FOUND'],
    ['mallory', chatId, good, 403, 'FORBIDDEN'],
  ];
  for (const [user, chat, body, status, code] of cases) {
    const answer = await post(user, chat, body);
    const what = JSON.stringify([user, chat, body, answer.body]).slice(0, 400);
    assert.equal(answer.status, status, what);
    assert.equal(answer.body.error.code, code, what);
  }
  const raw = await fetch(new URL(`/v1/chats/${chatId}/messages`, server.url), {
    method: 'POST',
    headers: { Authorization: `Bearer ${await devToken(server, 'alice')}` },
    body: Buffer.from('{"client_message_id":"x","body":"\xff"}', 'latin1'),
  });
  assert.equal(raw.status, 400);
  for (const query of [
    '?after_sequence=-1',
    '?after_sequence=x',
    '?before_sequence=1.5',
    '?limit=-1',
    '?after_sequence=1&before_sequence=2',
    '?after_sequence=',
  ])
    assert.equal((await history('alice', chatId, query)).status, 400, query);
  assert.equal((await history('mallory', chatId)).status, 403);
  assert.equal((await history('alice', 'nowhere')).status, 404);
  assert.equal((await rest(server, 'GET', `/v1/chats/${chatId}/messages`)).status, 401);
  assert.equal((await history('alice', chatId)).body.latest_sequence, 0);
});

test('sync is paged without gaps while new messages arrive', async () => {
  const chatId = await newChat('alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  await fill(alice, chatId, 250);
  const first = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(first.messages.length, PAGE_DEFAULT);
  assert.equal(first.has_more, true);
  assert.equal(first.latest_sequence, 250);

  const arriving = fill(alice, chatId, 300);
  const seen = first.messages.map(({ sequence }) => sequence);
  for (let page = first; page.has_more; ) {
    page = await bob.ask({
      type: 'sync_request',
      chat_id: chatId,
      after_sequence: seen[seen.length - 1],
      limit: 37,
    });
    seen.push(...page.messages.map(({ sequence }) => sequence));
  }
  await arriving;
  assert.ok(seen.length >= 250);
  assert.deepEqual(
    seen,
    Array.from({ length: seen.length }, (_, i) => i + 1),
  );
  const beyond = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 1e15 });
  assert.deepEqual([beyond.messages, beyond.has_more, beyond.latest_sequence], [[], false, 550]);
  const most = await bob.ask({
    type: 'sync_request',
    chat_id: chatId,
    after_sequence: 0,
    limit: 100000,
  });
  assert.equal(most.messages.length, PAGE_MAX);
});

test('pages are bounded in bytes, and go on where they end', async () => {
  const chatId = await newChat('alice', 'bob');
  const alice = await connect(server, 'alice');
  await fill(alice, chatId, 100, () => 'b'.repeat(BODY_BYTES_MAX));
  let after = 0;
  let pages = 0;
  for (let page = { has_more: true }; page.has_more; pages += 1) {
    page = await alice.ask({ type: 'sync_request', chat_id: chatId, after_sequence: after });
    assert.equal(page.messages[0].sequence, after + 1);
    after += page.messages.length;
  }
  assert.equal(after, 100);
  assert.ok(pages > 1);
  const newest = (await history('alice', chatId, '?before_sequence=101&limit=100')).body;
  assert.equal(newest.messages.at(-1).sequence, 100);
  assert.equal(newest.has_more, true);
});

test('history over REST goes both ways', async () => {
  const chatId = await newChat('alice', 'bob');
  await fill(await connect(server, 'alice'), chatId, 10);
  const sequences = async (query) => {
    const { body } = await history('bob', chatId, query);
    return [body.messages.map(({ sequence }) => sequence), body.has_more, body.latest_sequence];
  };
  assert.deepEqual(await sequences('?after_sequence=3&limit=3'), [[4, 5, 6], true, 10]);
  assert.deepEqual(await sequences('?after_sequence=8&limit=3'), [[9, 10], false, 10]);
  assert.deepEqual(await sequences('?after_sequence=99'), [[], false, 10]);
  assert.deepEqual(await sequences('?before_sequence=4&limit=2'), [[2, 3], true, 10]);
  assert.deepEqual(await sequences('?before_sequence=3'), [[1, 2], false, 10]);
  assert.deepEqual(await sequences('?before_sequence=1'), [[], false, 10]);
  assert.deepEqual((await sequences('?limit=4'))[0], [1, 2, 3, 4]);
});

test('ack moves the cursor, never back and never past the end; unread follows', async () => {
  const chatId = await newChat('alice', 'bob');
  await fill(await connect(server, 'alice'), chatId, 10);
  const unread = async () => {
    const { body } = await rest(server, 'GET', `/v1/chats/${chatId}`, { user: 'bob' });
    return body.unread;
  };
  const phone = await connect(server, 'bob', { device: 'phone' });
  const tablet = await connect(server, 'bob', { device: 'tablet' });
  assert.equal(await unread(), 10);
  for (let n = 1; n <= 6; n += 1) phone.send({ type: 'ack', chat_id: chatId, sequence: n });
  await eventually(async () => (await unread()) === 4, 'unread of 4');
  tablet.send({ type: 'ack', chat_id: chatId, sequence: 2 });
  await tablet.settle();
  await sleep(100);
  assert.equal(await unread(), 4, 'the device that is furthest counts');
  tablet.send({ type: 'ack', chat_id: chatId, sequence: 1000 });
  await eventually(async () => (await unread()) === 0, 'unread of 0');
  await fill(await connect(server, 'alice'), chatId, 1);
  assert.equal(await unread(), 1, 'what comes after an ack past the end is unread');
  assert.deepEqual(
    (await phone.settle()).filter(({ type }) => type === 'error'),
    [],
    'an ack is not answered',
  );
});

test('members are those of the moment: who joins hears the next, who leaves does not', async () => {
  const chatId = await newChat('alice', 'bob');
  const alice = await connect(server, 'alice');
  const bob = await connect(server, 'bob');
  const carol = await connect(server, 'carol');
  const member = (method, user) =>
    rest(server, method, `/v1/chats/${chatId}/members/${user}`, { user: 'alice' });
  for (let round = 0; round < 5; round += 1) {
    await sendMessage(alice, chatId, 'before');
    assert.equal((await bob.next('message')).body, 'before');
    await member('PUT', 'carol');
    await sendMessage(alice, chatId, 'with carol');
    assert.equal((await carol.next('message')).body, 'with carol');
    await member('DELETE', 'carol');
    await sendMessage(alice, chatId, 'without');
    await bob.next(({ body }) => body === 'without');
    const heard = (await carol.settle()).filter(({ type }) => type === 'message');
    assert.deepEqual(heard, []);
    bob.messages.length = 0;
  }
});

test('who was offline has it all by syncing', async () => {
  const chatId = await newChat('alice', 'bob');
  const before = await connect(server, 'bob');
  await before.close();
  await fill(await connect(server, 'alice'), chatId, 30);
  const bob = await connect(server, 'bob');
  const page = await bob.ask({ type: 'sync_request', chat_id: chatId, after_sequence: 0 });
  assert.equal(page.messages.length, 30);
});

test('ten messages a second, twenty at once: RATE_LIMITED says when to come back', async () => {
  const limited = await startServer();
  try {
    await rest(limited, 'POST', '/v1/chats', {
      user: 'alice',
      body: { chat_id: 'c', members: ['bob'] },
    });
    const alice = await connect(limited, 'alice');
    const answers = await Promise.all(
      Array.from({ length: BURST + 10 }, (_, i) => sendMessage(alice, 'c', 'now', `b-${i}`)),
    );
    const refused = answers.filter(({ type }) => type === 'error');
    assert.ok(refused.length >= 5 && refused.length <= 10, `${refused.length} refused`);
    for (const error of refused) {
      assert.equal(error.code, 'RATE_LIMITED');
      assert.match(error.client_message_id, /^b-/);
      assert.ok(error.retry_after_seconds > 0 && error.retry_after_seconds <= 1);
    }
    const stored = answers.filter(({ type }) => type === 'message_ack').length;
    const other = await connect(limited, 'alice');
    assert.equal((await sendMessage(other, 'c', 'another connection')).sequence, stored + 1);
    await sleep(Math.max(...refused.map((error) => error.retry_after_seconds)) * 1000 + 50);
    assert.equal((await sendMessage(alice, 'c', 'later')).type, 'message_ack');

    const rests = [];
    for (let i = 0; i < BURST * 3 && !rests.some(({ status }) => status === 429); i += 1)
      rests.push(
        ...(await Promise.all(
          Array.from({ length: 10 }, (_, n) =>
            post('bob', 'c', { client_message_id: `r-${i}-${n}`, body: 'now' }, limited),
          ),
        )),
      );
    const tooMany = rests.find(({ status }) => status === 429);
    assert.ok(tooMany, 'REST is limited per user');
    assert.equal(tooMany.body.error.code, 'RATE_LIMITED');
    assert.ok(Number(tooMany.headers.get('retry-after')) >= 1);
  } finally {
    closeAll();
    await limited.stop();
  }
});

test('a hundred requests in flight, then SERVER_BUSY; each has exactly one answer', async () => {
  const few = await startServer({
    settings: { ...AMPLE, 'gateway.backpressure.inbound.max_queue_depth': 5 },
  });
  try {
    await rest(few, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: 'c', members: [] } });
    const alice = await connect(few, 'alice');
    for (let n = 0; n < 200; n += 1)
      alice.send({
        type: 'send_message',
        id: n,
        chat_id: 'c',
        client_message_id: `f-${n}`,
        body: 'x',
      });
    const answered = ({ type }) => type === 'message_ack' || type === 'error';
    await eventually(() => alice.messages.filter(answered).length >= 200, '200 answers');
    await alice.settle();
    const answers = alice.messages.filter(answered);
    assert.equal(answers.length, 200);
    assert.equal(new Set(answers.map(({ id }) => id)).size, 200);
    const busy = answers.filter(({ code }) => code === 'SERVER_BUSY');
    assert.ok(busy.length > 0, 'more than five were in flight');
    for (const error of busy) assert.match(error.client_message_id, /^f-/);
    const { latest_sequence: latest } = (await history('alice', 'c', '', few)).body;
    assert.equal(latest, 200 - busy.length);
  } finally {
    closeAll();
    await few.stop();
  }
});

test('a drain answers what was asked before it closes', async (context) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-drain-'));
  context.after(() => rm(dataDir, { recursive: true, force: true }));
  const draining = await startServer({ dataDir, settings: AMPLE });
  await rest(draining, 'POST', '/v1/chats', {
    user: 'alice',
    body: { chat_id: 'c', members: ['bob'] },
  });
  const alice = await connect(draining, 'alice');
  for (let n = 0; n < 90; n += 1)
    alice.send({ type: 'send_message', id: n, chat_id: 'c', client_message_id: `d-${n}`, body: 'x' });
  const stopped = draining.stop();
  await alice.ended();
  assert.equal(await stopped, 0);
  const closing = alice.messages.find(({ type }) => type === 'connection_closing');
  assert.equal(closing.reason, 'draining');
  const answers = alice.messages.filter(({ type }) => type === 'message_ack' || type === 'error');
  assert.equal(new Set(answers.map(({ id }) => id)).size, answers.length);
  const acks = answers.filter(({ type }) => type === 'message_ack').length;
  assert.ok(acks > 0);
  const stored = await sql(ledgerPath(draining), 'SELECT count(*) FROM messages');
  assert.equal(Number(stored), acks, 'what was stored was acknowledged');
});

/** A connection that is accepted and never read from again. */
async function stalledReader(where, user) {
  const url = new URL('v1/ws', where.url).href.replace(/^http/, 'ws');
  const client = openSocket(url, [], {
    headers: { Authorization: `Bearer ${await devToken(where, user)}` },
  });
  client.established = await client.next('connection_established');
  client.socket._socket.pause();
  return client;
}

test('a reader that stops costs its bound only, is warned, and told where to sync from', async () => {
  const where = await startServer({
    settings: {
      ...AMPLE,
      'gateway.backpressure.outbound.max_buffer_messages': 100,
      'gateway.backpressure.outbound.grace_period_seconds': 1,
      'gateway.close_timeout_seconds': 8,
      'gateway.socket_unsent_bytes_max': 4096,
    },
  });
  try {
    const chats = ['x', 'y'];
    for (const chatId of chats)
      await rest(where, 'POST', '/v1/chats', {
        user: 'alice',
        body: { chat_id: chatId, members: ['slow', 'quick'] },
      });
    const alice = await connect(where, 'alice');
    const quick = await connect(where, 'quick');
    const slow = await stalledReader(where, 'slow');
    const total = 1500;
    let startedAt = Date.now();
    for (let n = 1; n <= total; n += 50)
      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          sendMessage(alice, chats[i % 2], `${'b'.repeat(4000)} ${n + i}`),
        ),
      );
    await eventually(
      () => quick.messages.filter(({ type }) => type === 'message').length === total,
      'everything at the quick reader',
    );
    const tookMs = Date.now() - startedAt;
    startedAt = Date.now();
    await eventually(
      async () =>
        /rollcall_gateway_slow_consumer_disconnects 1\b/.test(
          (await rest(where, 'GET', '/metrics')).body,
        ),
      'the slow reader disconnected',
    );
    slow.socket._socket.resume();
    const { code } = await slow.ended();
    assert.equal(code, 4003, `after ${tookMs} ms of sending`);
    const types = slow.messages.map(({ type, code: error }) => error ?? type);
    const warned = types.indexOf('SLOW_CONSUMER');
    const closing = slow.messages.find(({ type }) => type === 'connection_closing');
    assert.ok(warned >= 0 && warned < types.indexOf('connection_closing'));
    assert.equal(closing.reason, 'slow_consumer');
    assert.equal(closing.reconnect_allowed, true);
    assert.deepEqual(Object.keys(closing.sync_from_sequence).sort(), chats);
    for (const chatId of chats) {
      const got = slow.messages
        .filter(({ type, chat_id: chat }) => type === 'message' && chat === chatId)
        .map(({ sequence }) => sequence);
      assert.deepEqual(
        got,
        Array.from({ length: got.length }, (_, i) => i + 1),
        'in order, none left out',
      );
      assert.equal(closing.sync_from_sequence[chatId], got.length, 'what to sync after');
    }
  } finally {
    closeAll();
    await where.stop();
  }
});

test('presence gives way to messages, and is made up for when the reader has caught up', async () => {
  const where = await startServer({
    settings: {
      ...AMPLE,
      'gateway.backpressure.outbound.max_buffer_messages': 100,
      'gateway.backpressure.outbound.grace_period_seconds': 60,
      'gateway.socket_unsent_bytes_max': 4096,
    },
  });
  try {
    await rest(where, 'POST', '/v1/chats', {
      user: 'alice',
      body: { chat_id: 'c', members: ['slow'] },
    });
    for (const user of ['bob', 'carol']) await setVisibility(where, user, 'everyone');
    const alice = await connect(where, 'alice');
    const slow = await connect(where, 'slow');
    await slow.subscribe('bob', 'carol');
    slow.socket._socket.pause();
    const warnings = async () =>
      Number(
        /slow_consumer_warnings (\d+)/.exec((await rest(where, 'GET', '/metrics')).body)[1],
      );
    let sent = 0;
    for (; (await warnings()) === 0; sent += 1)
      assert.equal((await sendMessage(alice, 'c', 'b'.repeat(4000))).type, 'message_ack');
    await connect(where, 'bob');
    await eventually(
      async () => /states_shed [1-9]/.test((await rest(where, 'GET', '/metrics')).body),
      'a change that gave way',
    );
    slow.socket._socket.resume();
    const snapshot = await slow.next('presence_snapshot');
    assert.equal(snapshot.id, undefined);
    assert.equal(snapshot.presences.find(({ user_id: user }) => user === 'bob').status, 'online');
    const got = slow.messages.filter(({ type }) => type === 'message');
    assert.deepEqual(
      got.map(({ sequence }) => sequence),
      Array.from({ length: sent }, (_, i) => i + 1),
    );
    assert.equal((await slow.ask({ type: 'heartbeat' })).type, 'heartbeat_ack', 'it recovered');
  } finally {
    closeAll();
    await where.stop();
  }
});
