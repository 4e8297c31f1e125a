/** Failures of the ledger: senders get a clear error and no false acknowledgement, and the server recovers. */
import assert from 'node:assert/strict';
import { chmod, copyFile, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { AMPLE_RATES, makeChat } from '../support/chats.mjs';
import { closeAll, connect, eventually, metric, rest } from '../support/client.mjs';
import { ledgerPath, limitFileSize, lockDatabase, sql } from '../support/ledger.mjs';
import { rollcall, startServer } from '../support/server.mjs';

/** Short timeouts, and a breaker that closes soon. */
const SHORT_TIMEOUTS = {
  ...AMPLE_RATES,
  'gateway.timeouts.durability_rpc_seconds': 0.5,
  'gateway.circuit_breaker.open_duration_seconds': 0.3,
};

const servers = [];

afterEach(async () => {
  closeAll();
  for (const server of servers.splice(0)) await server.stop('SIGKILL');
});

async function start(options = {}) {
  const server = await startServer({ ...options, settings: { ...SHORT_TIMEOUTS, ...options.settings } });
  servers.push(server);
  return server;
}

/** Makes a data directory that outlives its servers. */
async function makeDirectory(context) {
  const path = await mkdtemp(join(tmpdir(), 'rollcall-ledger-'));
  context.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

let idNumber = 0;
const send = (client, body = 'text', chatId = 'c', id = `f-${(idNumber += 1)}`) =>
  client.ask({ type: 'send_message', chat_id: chatId, client_message_id: id, body });

/** Reads all messages of a chat, page by page. */
async function history(server, chatId = 'c') {
  const messages = [];
  for (let page = { has_more: true }; page.has_more; messages.push(...page.messages)) {
    const path = `/v1/chats/${chatId}/messages?limit=500&after_sequence=${messages.length}`;
    page = (await rest(server, 'GET', path, { user: 'alice' })).body;
  }
  return { messages };
}

/** Sends until a message is acknowledged; then that message is stored and sequences have no gap. */
async function expectRecovery(server, client, before) {
  const ack = await eventually(async () => {
    const answer = await send(client, 'back again');
    return answer.type === 'message_ack' && answer;
  }, 'a message is acknowledged again');
  const { messages } = await history(server);
  assert.deepEqual(
    messages.map(({ sequence }) => sequence),
    Array.from({ length: messages.length }, (_, i) => i + 1),
  );
  assert.ok(messages.some(({ message_id: id }) => id === ack.message_id));
  assert.ok(messages.length > before);
}

test('a chat whose counter lags is halted but readable, and `rollcall repair` restores it', async (context) => {
  const dataDir = await makeDirectory(context);
  let server = await start({ dataDir });
  await makeChat(server, 'c', 'alice', 'bob');
  await makeChat(server, 'healthy', 'alice', 'bob');
  const first = await connect(server, 'alice');
  for (let n = 1; n <= 3; n += 1) await send(first, `text ${n}`);
  await sql(ledgerPath(server), "UPDATE chat_counters SET sequence = 1 WHERE chat_id = 'c'");

  const halted = await send(first, 'into the dark', 'c', 'h-1');
  assert.equal(halted.code, 'CHAT_HALTED');
  assert.equal(halted.client_message_id, 'h-1');
  const overRest = await rest(server, 'POST', '/v1/chats/c/messages', {
    user: 'bob',
    body: { client_message_id: 'h-2', body: 'x' },
  });
  assert.equal(overRest.status, 409);
  assert.equal(overRest.body.error.code, 'CHAT_HALTED');
  assert.equal((await history(server)).messages.length, 3, 'reads go on');
  assert.equal((await send(first, 'elsewhere', 'healthy')).sequence, 1, 'other chats go on');
  assert.ok((await metric(server, 'durability_counter_corruption')) >= 2);
  const breaker = await metric(server, 'gateway_circuit_breaker_open');
  assert.equal(breaker, 0, 'a halted chat is no failure of the ledger');
  const isChatLogged = () => /event=chat_halted chat="c"/.test(server.log());
  await eventually(isChatLogged, 'the log names the chat');

  const url = `sqlite:${ledgerPath(server)}`;
  const inUse = await rollcall('repair', '--ledger', url, 'c');
  assert.equal(inUse.code, 1);
  assert.match(inUse.stderr, /in use/);
  await server.stop();
  const dry = await rollcall('repair', '--ledger', url, '--dry-run', 'c');
  assert.equal(dry.code, 0, dry.stderr);
  assert.match(dry.stdout, /counter is 1, the highest message 3: halted\nwould set .* to 3/);
  const done = await rollcall('repair', '--ledger', url, 'c');
  assert.match(done.stdout, /is set to 3; the next message gets 4/);
  assert.match((await rollcall('repair', '--ledger', url, 'c')).stdout, /nothing to do/);
  assert.equal((await rollcall('repair', '--ledger', url, 'nowhere')).code, 1);
  assert.equal((await rollcall('repair', '--ledger', url)).code, 2);

  server = await start({ dataDir });
  const again = await connect(server, 'alice');
  assert.equal((await send(again, 'into the dark', 'c', 'h-1')).sequence, 4);
});

test('a missing counter halts the chat, and no sequence is given twice', async (context) => {
  const dataDir = await makeDirectory(context);
  const server = await start({ dataDir });
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await send(alice);
  const path = ledgerPath(server);
  await sql(path, "DELETE FROM chat_counters WHERE chat_id = 'c'");
  assert.equal((await send(alice)).code, 'CHAT_HALTED');
  await assert.rejects(
    sql(
      path,
      "INSERT INTO messages VALUES ('c', 1, 'other', 'eve', 'other', 'text', 0)",
    ),
    /UNIQUE constraint failed/,
  );
  await server.stop();
  const repaired = await rollcall('repair', '--ledger', `sqlite:${path}`, 'c');
  assert.match(repaired.stdout, /counter is missing, the highest message 1: halted/);
});

test('messages left in the outbox by a crash are delivered after the start', async (context) => {
  const dataDir = await makeDirectory(context);
  let server = await start({ dataDir });
  await makeChat(server, 'c', 'alice', 'bob');
  await send(await connect(server, 'alice'), 'left behind');
  const path = ledgerPath(server);
  await eventually(async () => (await sql(path, 'SELECT count(*) FROM outbox')) === '0', 'the outbox is empty');
  await server.stop('SIGKILL');
  await sql(path, "INSERT INTO outbox (chat_id, sequence) VALUES ('c', 1)");
  server = await start({ dataDir });
  await eventually(async () => (await sql(path, 'SELECT count(*) FROM outbox')) === '0', 'the outbox is empty');
  assert.match(server.log(), /event=outbox_replayed messages=1/);
});

test('a poison event becomes a dead letter, which can be listed and replayed', async (context) => {
  const dataDir = await makeDirectory(context);
  let server = await start({ dataDir });
  await makeChat(server, 'ab', 'alice', 'bob');
  await send(await connect(server, 'alice'), 'lost chat', 'ab');
  const path = ledgerPath(server);
  await server.stop();
  const url = `sqlite:${path}`;
  // an id of the time before colons were refused
  for (const table of ['chats', 'chat_members', 'chat_counters', 'messages', 'sent_counts'])
    await sql(path, `UPDATE ${table} SET chat_id = 'a:b' WHERE chat_id = 'ab'`);
  const members = await sql(path, "SELECT quote(user_id) FROM chat_members WHERE chat_id = 'a:b'");
  await sql(
    path,
    "INSERT INTO outbox (chat_id, sequence) VALUES ('a:b', 1);" +
      "CREATE TABLE kept AS SELECT * FROM chats; CREATE TABLE kept_members AS SELECT * FROM chat_members;" +
      "DELETE FROM chat_members WHERE chat_id = 'a:b'; DELETE FROM chats WHERE chat_id = 'a:b'",
  );
  assert.match(members, /alice/);
  server = await start({ dataDir });
  await eventually(async () => (await metric(server, 'fanout_dlq_depth')) === 1, 'one dead letter is counted');
  assert.match(server.log(), /event=poison_event/);
  const whileItRuns = await rollcall('dead-letters', '--data-dir', dataDir);
  assert.match(whileItRuns.stdout, /^a:b:1\t\d{4}-\S+Z\tthere is no such chat\n$/, whileItRuns.stderr);
  await server.stop();

  const listed = await rollcall('dead-letters', '--ledger', url);
  assert.equal(listed.code, 0, listed.stderr);
  assert.match(listed.stdout, /^a:b:1\t\d{4}-\S+Z\tthere is no such chat\n$/);
  assert.equal((await rollcall('dead-letters', '--ledger', url, 'replay', 'a:b:2')).code, 1);
  assert.equal((await rollcall('dead-letters', '--ledger', url, 'replay', 'nonsense')).code, 2);
  await sql(
    path,
    'INSERT INTO chats SELECT * FROM kept; INSERT INTO chat_members SELECT * FROM kept_members;' +
      'DROP TABLE kept; DROP TABLE kept_members',
  );
  await sql(
    path,
    "CREATE TRIGGER stuck BEFORE DELETE ON dead_letters BEGIN SELECT RAISE(FAIL, 'stuck'); END",
  );
  const stuck = await rollcall('dead-letters', '--ledger', url, 'replay', 'all');
  assert.equal(stuck.code, 1, 'some dead letters could not be replayed');
  await sql(path, 'DROP TRIGGER stuck');
  server = await start({ dataDir });
  const missing = await rollcall('dead-letters', '--data-dir', dataDir, 'replay', 'a:b:1', 'a:b:2');
  assert.deepEqual([missing.code, missing.stdout], [1, '1 put back; the server delivers them\n'], missing.stderr);
  assert.match(missing.stderr, /there is no such dead letter/);
  const rest = await rollcall('dead-letters', '--ledger', url, 'replay');
  assert.deepEqual([rest.code, rest.stdout], [0, '0 put back; the server delivers them\n'], rest.stderr);
  assert.equal((await rollcall('dead-letters', '--ledger', url, 'list')).stdout, '');
  await eventually(async () => (await sql(path, 'SELECT count(*) FROM outbox')) === '0', 'the outbox is empty');
  assert.equal(await sql(path, 'SELECT count(*) FROM dead_letters'), '0');
});

test('a slow ledger opens the breaker; while it is open, answers come at once', async () => {
  const server = await start({
    settings: { 'gateway.circuit_breaker.open_duration_seconds': 3 },
  });
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await send(alice, 'before');
  const lock = await lockDatabase(ledgerPath(server));
  const startedMs = Date.now();
  const slow = await Promise.all(Array.from({ length: 5 }, () => send(alice, 'during')));
  const tookMs = Date.now() - startedMs;
  for (const error of slow) {
    assert.equal(error.code, 'SERVICE_UNAVAILABLE');
    assert.ok(error.retry_after_seconds > 0);
    assert.match(error.client_message_id, /^f-/);
  }
  assert.ok(tookMs >= 400 && tookMs < 10000, `the time limit is 500 ms, the answers took ${tookMs} ms`);
  await eventually(
    async () => (await metric(server, 'gateway_circuit_breaker_open')) === 1,
    'the metric shows an open breaker',
  );
  assert.match(server.log(), /event=circuit_breaker from=closed to=open/);
  const waits = [];
  for (let n = 0; n < 50; n += 1) {
    const from = process.hrtime.bigint();
    const refused = await send(alice, 'open');
    waits.push(Number(process.hrtime.bigint() - from) / 1e6);
    assert.equal(refused.code, 'SERVICE_UNAVAILABLE');
    assert.ok(refused.retry_after_seconds >= 1 && refused.retry_after_seconds <= 3);
  }
  const median = waits.sort((a, b) => a - b)[25];
  assert.ok(median < 20, `a refusal takes ${median} ms, including Node.js`);
  assert.equal((await history(server)).messages.length, 1, 'reads go on');
  await lock.release();
  await expectRecovery(server, alice, 1);
  await eventually(
    async () => (await metric(server, 'gateway_circuit_breaker_open')) === 0,
    'the metric shows a closed breaker',
  );
  assert.match(server.log(), /from=half_open to=closed/);
});

test('a locked database gives errors, and sending recovers after the lock', async () => {
  const server = await start();
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await send(alice);
  for (let round = 0; round < 2; round += 1) {
    const lock = await lockDatabase(ledgerPath(server));
    const answers = await Promise.all(Array.from({ length: 10 }, () => send(alice, 'locked out')));
    for (const answer of answers) assert.equal(answer.code, 'SERVICE_UNAVAILABLE');
    await lock.release();
    await expectRecovery(server, alice, 1);
  }
});

test('a full disk gives errors and no false acknowledgement, and sending recovers', async () => {
  const server = await start();
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  const acked = new Set();
  while (acked.size < 20) {
    const answer = await send(alice, 'b'.repeat(2000));
    if (answer.type === 'message_ack') acked.add(answer.message_id);
  }
  const { size } = await stat(`${ledgerPath(server)}-wal`);
  await limitFileSize(server, size + 20000);
  let refused = 0;
  for (let n = 0; n < 300 && refused < 5; n += 1) {
    const answer = await send(alice, 'b'.repeat(4000));
    if (answer.type === 'message_ack') acked.add(answer.message_id);
    else refused += answer.code === 'SERVICE_UNAVAILABLE' ? 1 : assert.fail(answer.code);
  }
  assert.equal(refused, 5, 'the disk was full');
  await eventually(
    async () => (await metric(server, 'durability_ledger_available')) === 0,
    'the metric shows that the ledger is unavailable',
  );
  await limitFileSize(server, 'unlimited');
  await expectRecovery(server, alice, acked.size);
  const stored = new Set((await history(server)).messages.map(({ message_id: id }) => id));
  for (const id of acked) assert.ok(stored.has(id), `acknowledged message ${id} is stored`);
});

/** Overwrites every page except those of the schema, without which the server does not start. */
async function damageTables(path) {
  const pageBytes = Number(await sql(path, 'PRAGMA page_size'));
  const pages = await sql(path, "SELECT pageno FROM dbstat WHERE name != 'sqlite_schema'");
  const file = await open(path, 'r+');
  for (const page of pages.split('\n').map(Number))
    await file.write(Buffer.alloc(pageBytes, 0xa5), 0, pageBytes, (page - 1) * pageBytes);
  await file.close();
}

test('a damaged database gives errors, and sending recovers once the file is restored', async (context) => {
  const dataDir = await makeDirectory(context);
  let server = await start({ dataDir });
  await makeChat(server, 'c', 'alice', 'bob');
  const path = ledgerPath(server);
  const first = await connect(server, 'alice');
  for (let n = 0; n < 50; n += 1) await send(first, 'b'.repeat(3000));
  await server.stop();
  await copyFile(path, `${path}.good`);
  await damageTables(path);

  server = await start({ dataDir });
  const alice = await connect(server, 'alice');
  for (let n = 0; n < 3; n += 1) assert.equal((await send(alice)).code, 'SERVICE_UNAVAILABLE');
  const read = await rest(server, 'GET', '/v1/chats/c/messages', { user: 'alice' });
  assert.equal(read.status, 503);
  assert.equal((await rest(server, 'GET', '/healthz')).status, 200);
  await writeFile(path, await readFile(`${path}.good`));
  await expectRecovery(server, alice, 50);
});

test('a file that is no database, or is read-only, prevents the start with a reason', async (context) => {
  const dataDir = await makeDirectory(context);
  await writeFile(join(dataDir, 'garbage.db'), 'this is no database, only text '.repeat(300));
  const garbage = await rollcall(
    ...['serve', '--dev', '--listen', '127.0.0.1:0', '--data-dir', dataDir],
    ...['--ledger', `sqlite:${join(dataDir, 'garbage.db')}`],
  );
  assert.equal(garbage.code, 1);
  assert.match(garbage.stderr, /garbage\.db: .*not a database/);

  if (process.getuid() === 0) {
    context.diagnostic('root may write to every file');
    return;
  }
  const server = await start({ dataDir });
  const path = ledgerPath(server);
  await server.stop();
  await chmod(path, 0o400);
  const readOnly = await rollcall(
    ...['serve', '--dev', '--listen', '127.0.0.1:0', '--data-dir', dataDir],
  );
  assert.equal(readOnly.code, 1);
  assert.match(readOnly.stderr, /ledger\.db/);
});
