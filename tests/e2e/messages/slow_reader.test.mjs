/**
 * One member of a large chat stops reading. It is warned, given a grace period and closed; all others receive
 * every message once and in order, and the server's memory stays within its bound.
 *
 * $CROWD is the number of members (800, which fit the usual 1,024 descriptors; `make soak` has 10,000, and the
 * default bounds).
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { promisify } from 'node:util';
import { eventually, metric, rest } from '../support/client.mjs';
import { residentBytes, ROLLCALL_BIN, startServer } from '../support/server.mjs';

const run = promisify(execFile);

const MEMBERS = Number(process.env.CROWD ?? 800);
const IS_SOAK = process.env.CROWD !== undefined;
/** The default in a soak, otherwise what a short run can fill. */
const BUFFERED_MAX = IS_SOAK ? 1000 : 100;
const BODY_BYTES = 800;
/** Enough to fill the queue and, before it, the buffers of the kernel. */
const MESSAGES = BUFFERED_MAX + 300;
const TOKEN_BYTES_MAX = 2048;
const TALK_MS_MAX = 300000;
const QUEUE_BYTES_MAX = 2 * 1024 * 1024;
/** The queue of the slow member, and one message in flight for each other member. */
const GROWTH_BYTES_MAX = QUEUE_BYTES_MAX + MEMBERS * 1024;

const SETTINGS = {
  'gateway.backpressure.inbound.rate_limit_per_second': 100000,
  'gateway.backpressure.inbound.rate_limit_burst': 100000,
  'gateway.backpressure.outbound.max_buffer_messages': BUFFERED_MAX,
  'gateway.backpressure.outbound.max_buffer_bytes': QUEUE_BYTES_MAX,
  'gateway.backpressure.outbound.grace_period_seconds': IS_SOAK ? 5 : 2,
  'gateway.close_timeout_seconds': 60, // the closing message waits until it is read
  'gateway.workers': 2,
};

/**
 * Under a sanitizer, resident memory is mostly the sanitizer's. (readFile() of Node 18 returns only the first
 * 4 KB of such a file.)
 */
const isSanitized = ({ pid }) => /lib[at]san/.test(readFileSync(`/proc/${pid}/maps`, 'utf8'));

/** Creates a chat of all members; returns the path of a file with their tokens. */
async function makeCrowd(server, directory) {
  const { stdout } = await run(
    ROLLCALL_BIN,
    ['token', 'member', '--count', MEMBERS, '--data-dir', server.dataDir],
    { maxBuffer: MEMBERS * TOKEN_BYTES_MAX },
  );
  const tokens = join(directory, 'tokens');
  await writeFile(tokens, stdout);
  const members = Array.from({ length: MEMBERS }, (_, n) => `member${n}`);
  const [token] = stdout.split('\n');
  const body = { chat_id: 'crowd', members: members.slice(1) };
  const { status } = await rest(server, 'POST', '/v1/chats', { token, body });
  assert.equal(status, 201);
  return tokens;
}

function startCrowd(server, tokens) {
  const args = ['--port', server.port, '--tokens', tokens, '--chat', 'crowd'];
  const sizes = ['--members', MEMBERS, '--messages', MESSAGES, '--body', BODY_BYTES];
  const child = spawn(join(dirname(ROLLCALL_BIN), 'bench', 'crowd'), [...args, ...sizes].map(String), {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  after(() => child.kill('SIGKILL'));
  const lines = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  child.stderr.on('data', (text) => {
    errors += text;
  });
  /** Waits until the program prints a line that starts so, and returns it. */
  const waitForLine = (start) =>
    eventually(
      () => {
        assert.equal(errors, '');
        return lines.find((text) => text.startsWith(start));
      },
      `a line that starts with ${start}`,
      TALK_MS_MAX,
    );
  return { waitForLine, wake: () => child.stdin.write('\n') };
}

test(`when one of ${MEMBERS} members stops reading, all others still receive every message`, async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'rollcall-crowd-'));
  after(() => rm(directory, { recursive: true, force: true }));
  const server = await startServer({ settings: SETTINGS });
  after(() => server.stop('SIGKILL'));
  const crowd = startCrowd(server, await makeCrowd(server, directory));
  await crowd.waitForLine('connected');
  const beforeBytes = await residentBytes(server);
  const slowDisconnects = () => metric(server, 'gateway_slow_consumer_disconnects');
  await eventually(async () => (await slowDisconnects()) === 1, 'the slow member is disconnected', TALK_MS_MAX);
  const heard = await crowd.waitForLine('heard');
  const grownBytes = (await residentBytes(server)) - beforeBytes;
  crowd.wake();
  const { messages, warned, closing, code } = JSON.parse(await crowd.waitForLine('{'));

  assert.equal(warned, 1, 'SLOW_CONSUMER came before the close');
  assert.equal(closing.reason, 'slow_consumer');
  assert.deepEqual(closing.sync_from_sequence, { crowd: messages });
  assert.equal(code, 4003);
  assert.ok(messages >= BUFFERED_MAX && messages < MESSAGES, `${messages} messages were queued for the slow member`);
  assert.equal(await slowDisconnects(), 1, 'nobody else was disconnected');
  context.diagnostic(`${heard}; the server grew by ${Math.round(grownBytes / 1024)} KiB`);
  if (!isSanitized(server)) assert.ok(grownBytes < GROWTH_BYTES_MAX, `memory grew by ${grownBytes} bytes`);
});
