/**
 * Two gateways on one `rollcall ledger`: one reads what the other stores; when the ledger is down, sends fail at
 * once and presence works; no acknowledged message is lost; only the right secret is accepted.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { AMPLE_RATES } from '../support/chats.mjs';
import { closeAll, connect, eventually, rest, setVisibility, sleep } from '../support/client.mjs';
import { startSilentFlood } from '../support/silent_flood.mjs';
import { sql } from '../support/ledger.mjs';
import { makeLedger, PEER_SECRET } from '../support/ledger_server.mjs';
import { rollcall, startServer } from '../support/server.mjs';

const run = promisify(execFile);

/** Less than the time limit of a request, which is 5 s. */
const REFUSAL_MS_MAX = 4000;
/** A request in flight waits this long for a new link. */
const IN_FLIGHT_MS_MAX = 10000;
const ROUNDS = 4;
const SENDERS = 4;
const IN_FLIGHT = 10;
/** More than twice as many as the ledger's pending peers. */
const FLOOD_COUNT = 600;

const SETTINGS = {
  ...AMPLE_RATES,
  'gateway.circuit_breaker.open_duration_seconds': 1,
};

/** Returns a function that starts gateways with the same key, so that a token of one is valid on all. */
async function makeGateways(ledger) {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-gateways-'));
  const running = [];
  after(async () => {
    closeAll();
    await Promise.all(running.map((server) => server.stop('SIGKILL')));
    await ledger.remove();
    await rm(dataDir, { recursive: true, force: true });
  });
  return async (settings = {}) => {
    const server = await startServer({
      dataDir,
      args: ['--ledger', ledger.url],
      settings: { ...SETTINGS, 'peer.secret': PEER_SECRET, 'gateway.workers': 1, ...settings },
    });
    running.push(server);
    return server;
  };
}

async function startFleet() {
  const ledger = await makeLedger();
  const start = await makeGateways(ledger);
  await ledger.start();
  return { ledger, gateways: [await start(), await start()], start };
}

const makeChat = (server, chatId) =>
  rest(server, 'POST', '/v1/chats', { user: 'alice', body: { chat_id: chatId, members: ['bob'] } });

const send = (client, chatId, id, body = id) =>
  client.ask({ type: 'send_message', chat_id: chatId, client_message_id: id, body });

async function history(server, chatId, user = 'bob') {
  const { status, body } = await rest(server, 'GET', `/v1/chats/${chatId}/messages?limit=500`, { user });
  assert.equal(status, 200, JSON.stringify(body));
  return body.messages;
}

/** Sends a message until it is acknowledged, as clients do. */
const sendUntilAcked = (client, chatId, id) =>
  eventually(async () => {
    const answer = await send(client, chatId, id);
    if (answer.type === 'message_ack') return answer;
    assert.equal(answer.code, 'SERVICE_UNAVAILABLE', JSON.stringify(answer));
    await sleep(100);
    return undefined;
  }, `acknowledgement of ${id}`);

test('each gateway reads the messages that were sent through the other', async () => {
  const { gateways } = await startFleet();
  const [one, two] = gateways;
  assert.equal((await makeChat(one, 'c')).status, 201);
  const alice = await connect(one, 'alice');
  const ack = await send(alice, 'c', 'm-1', 'hello');
  assert.equal(ack.sequence, 1);
  const bob = await connect(two, 'bob');
  assert.equal((await send(bob, 'c', 'm-2', 'hello yourself')).sequence, 2);
  for (const gateway of gateways)
    assert.deepEqual(
      (await history(gateway, 'c')).map(({ sequence, body }) => [sequence, body]),
      [[1, 'hello'], [2, 'hello yourself']],
    );
});

test('while the ledger is down sends fail at once and presence works; afterwards nothing is lost', async () => {
  const { ledger, gateways } = await startFleet();
  const [one, two] = gateways;
  await makeChat(one, 'c');
  await setVisibility(one, 'bob', 'everyone');
  const alice = await connect(one, 'alice');
  const bob = await connect(one, 'bob');
  await alice.subscribe('bob');
  const first = await send(alice, 'c', 'm-1');
  assert.equal(await ledger.stop('SIGKILL'), 'SIGKILL');

  await eventually(() => /event=ledger_lost/.test(one.log()), 'the gateway logs the loss');
  for (let i = 0; i < 20; i += 1) {
    const startedMs = Date.now();
    const { code } = await send(alice, 'c', 'm-2');
    assert.equal(code, 'SERVICE_UNAVAILABLE');
    assert.ok(Date.now() - startedMs < REFUSAL_MS_MAX, `after ${Date.now() - startedMs} ms`);
  }
  assert.equal((await bob.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await bob.close();
  assert.equal((await alice.nextChange('bob', 'offline')).status, 'offline');

  await ledger.start();
  const second = await sendUntilAcked(alice, 'c', 'm-2');
  assert.equal(second.sequence, 2);
  const again = await send(alice, 'c', 'm-1');
  assert.deepEqual([again.sequence, again.message_id], [first.sequence, first.message_id]);
  assert.deepEqual((await history(two, 'c')).map(({ body }) => body), ['m-1', 'm-2']);
});

/** Keeps messages in flight, and sends again what was refused. */
function startStorm(client, name, chatId, acked, longestMs) {
  const startedMs = new Map();
  let sent = 0;
  const transmit = (id) => {
    startedMs.set(id, Date.now());
    client.send({ type: 'send_message', chat_id: chatId, client_message_id: id, body: id });
  };
  const sendNext = () => transmit(`${name}-${(sent += 1)}`);
  let stopped = false;
  client.socket.on('message', (data) => {
    const { type, client_message_id: id, ...answer } = JSON.parse(data);
    if (type !== 'message_ack' && type !== 'error') return;
    longestMs.value = Math.max(longestMs.value, Date.now() - startedMs.get(id));
    if (type === 'message_ack') acked.set(id, answer);
    if (type === 'message_ack' && !stopped) sendNext();
    if (type === 'error') setTimeout(() => transmit(id), 50);
  });
  for (let i = 0; i < IN_FLIGHT; i += 1) sendNext();
  return {
    stop: () => {
      stopped = true;
    },
    done: () => [...startedMs.keys()].every((id) => acked.has(id)),
  };
}

test(`no acknowledged message is lost over ${ROUNDS} kills of the ledger in a storm`, { timeout: 600000 }, async () => {
  const { ledger, gateways } = await startFleet();
  const acked = new Map();
  const longestMs = { value: 0 };
  await makeChat(gateways[0], 'c');
  const storms = [];
  for (let i = 0; i < SENDERS; i += 1) {
    const client = await connect(gateways[i % 2], 'alice', { device: `d${i}` });
    storms.push(startStorm(client, `s${i}`, 'c', acked, longestMs));
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    await sleep(200 + Math.random() * 300);
    await ledger.stop('SIGKILL');
    await sleep(Math.random() * 500);
    await ledger.start();
    const before = acked.size;
    await eventually(() => acked.size > before + SENDERS * IN_FLIGHT, 'messages are acknowledged again');
  }
  for (const { stop } of storms) stop();
  await eventually(() => storms.every(({ done }) => done()), 'every message is acknowledged');
  assert.ok(longestMs.value < IN_FLIGHT_MS_MAX, `one message waited ${longestMs.value} ms`);

  const rows = await sql(
    ledger.path,
    "SELECT sequence || ' ' || client_message_id || ' ' || message_id FROM messages ORDER BY sequence",
  );
  const stored = rows.split('\n').map((row) => row.split(' '));
  stored.forEach(([sequence], i) => assert.equal(Number(sequence), i + 1, 'sequences are dense from 1'));
  const byId = new Map(stored.map(([sequence, id, messageId]) => [id, [Number(sequence), messageId]]));
  assert.equal(byId.size, stored.length, 'each client_message_id is stored once');
  for (const [id, ack] of acked)
    assert.deepEqual(byId.get(id), [ack.sequence, ack.message_id], `${id} is stored as it was acknowledged`);
});

test('a gateway started without the ledger serves presence, and sends work once the ledger starts', async () => {
  const ledger = await makeLedger();
  const start = await makeGateways(ledger);
  const server = await start();
  const alice = await connect(server, 'alice');
  assert.equal((await alice.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  await eventually(() => /event=ledger_out_of_reach/.test(server.log()), 'the log names the problem');
  const startedMs = Date.now();
  assert.equal((await send(alice, 'c', 'm-1')).code, 'SERVICE_UNAVAILABLE');
  assert.ok(Date.now() - startedMs < REFUSAL_MS_MAX);
  await ledger.start();
  await eventually(async () => (await makeChat(server, 'c')).status === 201, 'the chat is created');
  assert.equal((await sendUntilAcked(alice, 'c', 'm-1')).sequence, 1);
});

test('a wrong secret is refused, and both sides log the reason', async () => {
  const ledger = await makeLedger();
  const start = await makeGateways(ledger);
  await ledger.start();
  const server = await start({ 'peer.secret': 'a guess' });
  await eventually(() => /peer_link_closed .*peer\.secret may differ/.test(server.log()), 'the gateway logs the reason');
  await eventually(() => /ledger_link_refused .*reason="wrong secret/.test(ledger.log()), 'the ledger logs the reason');
  const alice = await connect(server, 'alice');
  assert.equal((await send(alice, 'c', 'm-1')).code, 'SERVICE_UNAVAILABLE');
});

test('a flood of silent connections does not keep gateways from the ledger', { timeout: 300000 }, async () => {
  const ledger = await makeLedger();
  const start = await makeGateways(ledger);
  await ledger.start();
  const flood = startSilentFlood({ port: ledger.port, count: FLOOD_COUNT });
  after(() => flood.stop());
  await eventually(() => flood.closedCount() > FLOOD_COUNT / 2, 'silent connections are closed');
  const gateways = [await start(), await start()];
  for (const gateway of gateways)
    await eventually(() => /event=peer_link_open/.test(gateway.log()), 'the link is open');
  assert.equal((await makeChat(gateways[0], 'c')).status, 201);
  for (const [i, user] of ['alice', 'bob'].entries()) {
    const client = await connect(gateways[i], user);
    for (let n = 0; n < IN_FLIGHT; n += 1) {
      const before = flood.closedCount();
      assert.equal((await send(client, 'c', `${user}-${n}`)).type, 'message_ack');
      await eventually(() => flood.closedCount() > before, 'the flood goes on');
    }
  }
  assert.equal((await history(gateways[1], 'c')).length, 2 * IN_FLIGHT);
  for (const gateway of gateways) assert.doesNotMatch(gateway.log(), /event=ledger_lost/);
  const refused = gateways.filter((gateway) => /event=peer_link_closed/.test(gateway.log()));
  assert.ok(refused.length < gateways.length, 'at least one gateway is linked at its first attempt');
});

test('a hanging ledger delays one send by the time limit, then sends fail at once', { timeout: 300000 }, async () => {
  const { ledger, gateways } = await startFleet();
  const [server] = gateways;
  await makeChat(server, 'c');
  const alice = await connect(server, 'alice');
  process.kill(ledger.pid, 'SIGSTOP');
  try {
    const { code } = await send(alice, 'c', 'm-1');
    assert.equal(code, 'SERVICE_UNAVAILABLE');
    const isSilenceLogged = () => /event=ledger_lost reason="the other side is silent"/.test(server.log());
    await eventually(isSilenceLogged, 'the gateway logs the silence');
    const startedMs = Date.now();
    assert.equal((await send(alice, 'c', 'm-1')).code, 'SERVICE_UNAVAILABLE');
    assert.ok(Date.now() - startedMs < REFUSAL_MS_MAX);
    assert.equal((await alice.ask({ type: 'heartbeat' })).type, 'heartbeat_ack');
  } finally {
    process.kill(ledger.pid, 'SIGCONT');
  }
  assert.equal((await sendUntilAcked(alice, 'c', 'm-1')).sequence, 1);
  assert.equal((await history(server, 'c')).length, 1);
});

test('links use TLS if configured, and plain links are refused', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-peer-tls-'));
  after(() => rm(directory, { recursive: true, force: true }));
  const certificate = join(directory, 'certificate.pem');
  const key = join(directory, 'key.pem');
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  await run('openssl', [
    ...request, '-days', '2', '-subj', '/CN=ledger', '-addext', 'subjectAltName=IP:127.0.0.1',
    '-keyout', key, '-out', certificate,
  ]);
  const ledger = await makeLedger({ 'peer.tls.certificate_file': certificate, 'peer.tls.key_file': key });
  const start = await makeGateways(ledger);
  await ledger.start();
  const trusting = await start({ 'peer.tls.ca_file': certificate });
  assert.equal((await makeChat(trusting, 'c')).status, 201);
  const plain = await start();
  await eventually(() => /event=peer_link_closed/.test(plain.log()), 'the plain link is closed');
  assert.equal((await makeChat(plain, 'd')).status, 503);
});

test('a drain answers pending requests and exits with 0', async () => {
  const { ledger, gateways } = await startFleet();
  await makeChat(gateways[0], 'c');
  const alice = await connect(gateways[0], 'alice');
  const answers = Array.from({ length: 50 }, (_, i) => send(alice, 'c', `m-${i}`));
  await answers[0];
  assert.equal(await ledger.stop('SIGTERM'), 0);
  const acked = (await Promise.all(answers)).filter(({ type }) => type === 'message_ack');
  const count = Number(await sql(ledger.path, 'SELECT count(*) FROM messages'));
  assert.ok(count >= acked.length, `${acked.length} acknowledged, ${count} stored`);
});

test('ledger and gateway do not start without a required setting, and the error names it', async () => {
  const address = ['--peer-listen', '127.0.0.1:0'];
  const wrong = [
    [[], 2, /needs --peer-listen HOST:PORT/],
    [address, 2, /needs peer\.secret/],
    [[...address, '--set', 'peer.secret=x', '--ledger', 'remote://127.0.0.1:1'], 1, /must be sqlite:PATH/],
    [[...address, '--set', 'peer.secret=x', '--ledger', 'sqlite:/nowhere/at/all.db'], 1, /cannot open/],
  ];
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-wrong-'));
  after(() => rm(dataDir, { recursive: true, force: true }));
  for (const [args, expected, reason] of wrong) {
    const { code, stderr } = await rollcall('ledger', '--data-dir', dataDir, ...args);
    assert.equal(code, expected, stderr);
    assert.match(stderr, reason);
  }
  const { code, stderr } = await rollcall(
    'serve', '--dev', '--listen', '127.0.0.1:0', '--data-dir', dataDir, '--ledger', 'remote://127.0.0.1:1',
  );
  assert.equal(code, 1, stderr);
  assert.match(stderr, /needs peer\.secret/);
});
