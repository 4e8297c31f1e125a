/** The HTTP pages of `rollcall ledger`: health, readiness and metrics. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { closeAll, connect, eventually, metric, rest } from '../support/client.mjs';
import { startSilentFlood } from '../support/silent_flood.mjs';
import { limitFileSize } from '../support/ledger.mjs';
import { makeLedger, PEER_SECRET } from '../support/ledger_server.mjs';
import { rawConnect, request } from '../support/raw.mjs';
import { ROLLCALL_BIN, rollcall, startServer } from '../support/server.mjs';

/** More than the listener accepts at a time. */
const FLOOD_COUNT = 100;

async function startLedger(environment = {}) {
  const ledger = await makeLedger({}, environment);
  after(() => ledger.remove());
  await ledger.start();
  return ledger;
}

async function startGateway(ledger, settings = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'rollcall-pages-'));
  const server = await startServer({
    dataDir,
    args: ['--ledger', ledger.url],
    settings: { 'peer.secret': PEER_SECRET, 'gateway.workers': 1, ...settings },
  });
  after(async () => {
    closeAll();
    await server.stop('SIGKILL');
    await rm(dataDir, { recursive: true, force: true });
  });
  return server;
}

async function startChat(ledger) {
  const server = await startGateway(ledger);
  const body = { chat_id: 'c', members: ['bob'] };
  assert.equal((await rest(server, 'POST', '/v1/chats', { user: 'alice', body })).status, 201);
  return connect(server, 'alice');
}

const send = (client, id) =>
  client.ask({ type: 'send_message', chat_id: 'c', client_message_id: id, body: id });

const readyStatus = async ({ pages }) => (await rest(pages, 'GET', '/readyz')).status;

/** How many operations of a kind had this outcome. */
async function countAnswers({ pages }, operation, outcome) {
  const { body } = await rest(pages, 'GET', '/metrics');
  const line = `^rollcall_ledger_requests\\{operation="${operation}",outcome="${outcome}"\\} (\\d+)$`;
  return Number(new RegExp(line, 'm').exec(body)?.[1] ?? 0);
}

test('health, readiness and metrics are served, and nothing else', async () => {
  const ledger = await startLedger();
  assert.deepEqual((await rest(ledger.pages, 'GET', '/healthz')).body, { status: 'ok' });
  assert.deepEqual((await rest(ledger.pages, 'GET', '/readyz')).body, { status: 'ready' });
  for (const path of ['/', '/v1/me', '/dev/token', '/metrics/'])
    assert.equal((await rest(ledger.pages, 'GET', path)).status, 404, path);
  assert.equal((await rest(ledger.pages, 'POST', '/metrics')).status, 405);
  const { status, body } = await rest(ledger.pages, 'HEAD', '/metrics');
  assert.deepEqual([status, body], [200, '']);
});

test('each metric is described once, before its values', async () => {
  const ledger = await startLedger();
  const { body, headers } = await rest(ledger.pages, 'GET', '/metrics');
  assert.match(headers.get('content-type'), /^text\/plain; version=0\.0\.4/);
  const described = [...body.matchAll(/^# TYPE (\w+) (?:counter|gauge|histogram)$/gm)].map(([, name]) => name);
  assert.equal(new Set(described).size, described.length);
  for (const [, name] of body.matchAll(/^(rollcall_\w+)/gm))
    assert.ok(described.includes(name.replace(/_(bucket|sum|count)$/, '')) || described.includes(name), name);
});

test('metrics count links, and requests by operation and outcome', async () => {
  const ledger = await startLedger();
  const alice = await startChat(ledger);
  assert.equal((await send(alice, 'm-1')).type, 'message_ack');
  assert.equal((await send(alice, 'm-1')).type, 'message_ack');
  assert.equal(await metric(ledger.pages, 'ledger_links'), 1);
  assert.equal(await metric(ledger.pages, 'ledger_links_opened'), 1);
  assert.equal(await metric(ledger.pages, 'ledger_strangers'), 0);
  assert.equal(await countAnswers(ledger, 'chat_create', 'ok'), 1);
  assert.equal(await countAnswers(ledger, 'message_append', 'ok'), 2);
  assert.equal(await metric(ledger.pages, 'ledger_appends'), 1);
  assert.equal(await metric(ledger.pages, 'ledger_duplicates'), 1);
  assert.ok((await metric(ledger.pages, 'ledger_commits')) >= 2);
  assert.ok((await metric(ledger.pages, 'ledger_commit_seconds_count')) >= 2);
  assert.ok((await metric(ledger.pages, 'ledger_group_requests_sum')) >= 2);
});

test('metrics count wrong secrets and displaced pending peers', async () => {
  const ledger = await startLedger();
  await startGateway(ledger, { 'peer.secret': 'a guess' });
  await eventually(() => metric(ledger.pages, 'ledger_links_refused'), 'a link is refused');
  assert.equal(await metric(ledger.pages, 'ledger_strangers_displaced'), 0);
  const flood = startSilentFlood({ port: ledger.port, count: 600 });
  after(() => flood.stop());
  await eventually(() => metric(ledger.pages, 'ledger_strangers_displaced'), 'a pending peer is displaced');
  assert.ok((await metric(ledger.pages, 'ledger_strangers')) <= 256);
  assert.equal(await metric(ledger.pages, 'ledger_links'), 0);
});

test('the ledger is healthy but not ready while it cannot write', async () => {
  const ledger = await startLedger();
  const alice = await startChat(ledger);
  await limitFileSize(ledger, 0);
  assert.equal((await send(alice, 'm-1')).code, 'SERVICE_UNAVAILABLE');
  const { status, body } = await rest(ledger.pages, 'GET', '/readyz');
  assert.equal(status, 503);
  assert.equal(body.error.message, 'the database fails');
  assert.equal((await rest(ledger.pages, 'GET', '/healthz')).status, 200);
  assert.equal(await metric(ledger.pages, 'ledger_available'), 0);
  assert.ok((await metric(ledger.pages, 'ledger_commit_failures')) >= 1);
  assert.ok((await countAnswers(ledger, 'message_append', 'unavailable')) >= 1);
  await limitFileSize(ledger, 'unlimited');
  await eventually(async () => (await send(alice, 'm-1')).type === 'message_ack', 'the message is stored');
  assert.equal(await readyStatus(ledger), 200);
});

test('the ledger is not ready while it drains', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-slow-'));
  after(() => rm(directory, { recursive: true, force: true }));
  const stuck = join(directory, 'stuck');
  const ledger = await startLedger({
    LD_PRELOAD: join(dirname(ROLLCALL_BIN), 'libslow_disk.so'),
    SLOW_DISK: stuck,
    ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
  });
  const alice = await startChat(ledger);
  await writeFile(stuck, '');
  const kept = rawConnect(ledger.pages);
  await kept.connected;
  const answer = send(alice, 'm-1');
  await eventually(() => metric(ledger.pages, 'ledger_requests_unanswered'), 'a request is pending');
  const stopped = ledger.stop('SIGTERM');
  await eventually(() => /event=draining/.test(ledger.log()), 'the drain is logged');
  kept.send(request('GET', '/readyz'));
  const { status, body, headers } = await kept.response();
  assert.equal(status, 503);
  assert.match(body, /draining/);
  assert.equal(headers.connection, 'close');
  await rm(stuck);
  assert.equal(await stopped, 0);
  await answer;
});

test('silent connections do not block other clients', async () => {
  const ledger = await startLedger();
  const flood = startSilentFlood({ port: ledger.pages.port, count: FLOOD_COUNT });
  after(() => flood.stop());
  await eventually(() => flood.closedCount() > FLOOD_COUNT, 'silent connections are closed');
  for (let i = 0; i < 5; i += 1) assert.equal(await readyStatus(ledger), 200);
  assert.equal(await ledger.stop('SIGTERM'), 0);
});

test('an address that cannot be resolved is reported at the start', async () => {
  const ledger = await startLedger();
  const { code, stderr } = await rollcall(
    'ledger', '--peer-listen', '127.0.0.1:0', '--set', 'peer.secret=x', '--data-dir', `${ledger.path}-2`,
    '--set', 'ledger.http_listen=nowhere.invalid:1',
  );
  assert.equal(code, 1, stderr);
  assert.match(stderr, /ledger\.http_listen: cannot resolve nowhere\.invalid:1/);
});
