/** bench/million with few users: it holds them, loses a gateway, cleans up, and refuses what cannot be. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { ROLLCALL_BIN } from '../support/server.mjs';

const PROGRAM = fileURLToPath(new URL('../../../bench/million', import.meta.url));
const BUILD = dirname(resolve(ROLLCALL_BIN));
const TIMEOUT_MS = 240000;
let scratch;

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'rollcall-million-'));
});
after(() => rm(scratch, { recursive: true, force: true }));

/** Runs it, and resolves with its status and outputs, whatever they are. */
const run = (...args) =>
  new Promise((done) => {
    execFile(
      PROGRAM,
      ['--build', BUILD, '--scratch', scratch, ...args],
      { timeout: TIMEOUT_MS },
      (error, stdout, stderr) => done({ status: error?.code ?? 0, stdout, stderr }),
    );
  });

test('holds users, and those of a killed gateway come back without any loss', { timeout: TIMEOUT_MS }, async () => {
  const { status, stdout, stderr } = await run('--users', '400', '--profile', 'realtime', '--seconds', '6');
  assert.equal(status, 0, stderr);
  const figures = JSON.parse(stdout);
  assert.equal(figures.users, 400);
  assert.equal(figures.leases_lost, 0);
  assert.equal(figures.leases_lost_after_storm, 0);
  assert.ok(figures.steady.heartbeats_per_second > 20, stdout);
  assert.ok(figures.storm.clients > 50, stdout);
  assert.equal(figures.storm.others_lost, 0);
  assert.ok(figures.bytes_per_connection.redis_used > 100, stdout);
  assert.deepEqual(await readdir(scratch), [], 'temporary files are left');
});

test('refuses more users than the machine can hold, and says why', async () => {
  const { status, stderr } = await run('--users', '2000000000');
  assert.equal(status, 1);
  assert.match(stderr, /files|GiB/);
  const few = await run('--users', '100000', '--gateways', '1');
  assert.equal(few.status, 1);
  assert.match(few.stderr, /1 gateways hold/);
});
