/** The circuit breaker with its default settings: requests that time out open it, then refusals are cheap. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { AMPLE_RATES, makeChat } from '../support/chats.mjs';
import { connect, eventually, metric, rest } from '../support/client.mjs';
import { ROLLCALL_BIN, startServer } from '../support/server.mjs';

const run = promisify(execFile);

/** Five failures within 30 s, each a timeout of 5 s, open the breaker for 30 s. */
const FAILURES = 5;
const LIMIT_MS = 5000;
const OPEN_SECONDS = 30;
/** Delay that a busy machine may add to any time. */
const SLACK_MS = 15000;

/** A refusal does little more than a heartbeat: parse JSON, read the breaker's state, write JSON. */
const REFUSAL_PER_HEARTBEAT_MAX = 3;

const programs = dirname(ROLLCALL_BIN);

/** Starts a server whose disk writes block while the file `stuck` exists. */
async function startOnSlowDisk(stuck) {
  const server = await startServer({
    env: {
      LD_PRELOAD: join(programs, 'libslow_disk.so'),
      SLOW_DISK: stuck,
      ASAN_OPTIONS: `${process.env.ASAN_OPTIONS ?? ''}:verify_asan_link_order=0`,
    },
    settings: AMPLE_RATES,
  });
  after(async () => {
    await rm(stuck, { force: true });
    await server.stop('SIGKILL');
  });
  return server;
}

function send(client, id) {
  client.send({ type: 'send_message', chat_id: 'c', client_message_id: id, body: 'text' });
  return client.next((message) => message.client_message_id === id, LIMIT_MS + SLACK_MS);
}

test('timeouts of the ledger open the breaker; then a refusal costs little more than a heartbeat', async (context) => {
  const stuck = join(tmpdir(), `rollcall-stuck-${process.pid}`);
  const server = await startOnSlowDisk(stuck);
  await makeChat(server, 'c', 'alice', 'bob');
  const alice = await connect(server, 'alice');
  await writeFile(stuck, '');

  const startedMs = Date.now();
  const answers = Array.from({ length: FAILURES }, (_, n) =>
    send(alice, `m-${n}`).then((answer) => ({ ...answer, afterMs: Date.now() - startedMs })),
  );
  for (const { code, afterMs } of await Promise.all(answers)) {
    assert.equal(code, 'SERVICE_UNAVAILABLE');
    assert.ok(afterMs >= LIMIT_MS - 100 && afterMs < LIMIT_MS + SLACK_MS, `after ${afterMs} ms`);
  }
  assert.match(server.log(), /event=circuit_breaker from=closed to=open/);
  assert.ok((await metric(server, 'gateway_circuit_breaker_open')) > 0, 'the metric changes at once');
  const { retry_after_seconds: retryAfterSeconds } = await send(alice, 'm-9');
  assert.ok(retryAfterSeconds > OPEN_SECONDS / 2 && retryAfterSeconds <= OPEN_SECONDS);

  const token = await server.token('bob');
  const { stdout } = await run(join(programs, 'bench', 'refusals'), [
    ...['--port', server.port, '--token', token, '--chat', 'c'],
  ]);
  const { heartbeat_us: heartbeatUs, refusal_us: refusalUs } = JSON.parse(stdout);
  const figures = `while open, a refusal takes ${refusalUs} µs, a heartbeat ${heartbeatUs} µs`;
  context.diagnostic(figures);
  assert.ok(refusalUs <= REFUSAL_PER_HEARTBEAT_MAX * heartbeatUs, figures);

  await rm(stuck);
  await eventually(async () => {
    const { body: page } = await rest(server, 'GET', '/v1/chats/c/messages', { user: 'alice' });
    return page.messages.length > 0 && page.messages.every(({ sequence }, n) => sequence === n + 1);
  }, 'the message in progress is stored: a timeout does not mean that a write failed');
});
