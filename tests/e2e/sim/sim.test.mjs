/** `rollcall sim`: runs repeat themselves, short runs of every fault that the fleet withstands hold, and lies are found. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ROLLCALL_BIN } from '../support/server.mjs';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SHORT = ['--hours', '0.08', '--users', '10'];

/** Runs the simulator; resolves with its output and exit status. */
const simulate = async (...args) => {
  try {
    const { stdout, stderr } = await run(ROLLCALL_BIN, ['sim', ...SHORT, ...args], { timeout: 600_000 });
    return { status: 0, stdout, stderr };
  } catch (error) {
    return { status: error.code, stdout: error.stdout, stderr: error.stderr };
  }
};
const hash = ({ stdout }) => stdout.match(/hash ([0-9a-f]{16})/)?.[1];

test('the same seed gives the same run, another seed another one', async () => {
  const first = await simulate('--seed', '1');
  const second = await simulate('--seed', '1', '--trace');
  const other = await simulate('--seed', '2');
  assert.ok(hash(first), first.stdout + first.stderr);
  assert.equal(hash(second), hash(first));
  assert.notEqual(hash(other), hash(first));
});

for (const [fault, ...fleet] of [['redis_resharded', '--redis', 'cluster'], ['aggregator_killed', '--aggregators', '2'],
  ['gateway_paused', '--workers', '2'], ['calm', '--fleet', 'drawn', '--seed', '3']])
  test(`all invariants hold, and runs repeat themselves: ${fault} ${fleet.join(' ')}`, async () => {
    const first = await simulate('--scenario', fault, ...fleet);
    const second = await simulate('--scenario', fault, ...fleet);
    assert.equal(first.status, 0, first.stdout + first.stderr);
    assert.equal(hash(second), hash(first));
  });

test('a fault that the fleet does not have is refused', async () => {
  const { status, stderr } = await simulate('--scenario', 'redis_resharded');
  assert.equal(status, 2);
  assert.match(stderr, /Usage: rollcall sim/);
});

/* Not yet here, as single seeds of them still violate something (docs/PROOF.md): gateway_power, redis_paused,
 * redis_unreachable, redis_full, redis_loading, redis_evicts, redis_failover, link_one_way, links_cut, clock_step; and pairs. */
for (const fault of ['calm', 'gateway_killed', 'gateway_drained', 'gateway_paused', 'redis_cut', 'redis_empty',
  'redis_restarted', 'ledger_killed', 'ledger_power', 'ledger_disk', 'clock_drift', 'devices_vanish', 'devices_stall'])
  test(`all invariants hold: ${fault}`, async () => {
    const { status, stdout, stderr } = await simulate('--scenario', fault, '--seeds', '1-2');
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, /2 seeds, 0 violated/);
  });

test('a truth that comes too late is reported with the seed, the invariant and the last events', async () => {
  const { status, stdout } = await simulate('--scenario', 'devices_vanish', '--seeds', '1-6', '--grace', '-12');
  assert.equal(status, 1, stdout);
  assert.match(stdout, /seed \d violates presence_staleness_bounded/);
  assert.match(stdout, /fault \d+ devices_vanish/);
});

test('wrong arguments are refused', async () => {
  const { status, stderr } = await simulate('--scenario', 'meteor');
  assert.equal(status, 2);
  assert.match(stderr, /Usage: rollcall sim/);
});

test('planted defects are found: presence that anybody sees, memory that leaks, two answers', async () => {
  const { stdout } = await run('tools/sim-defects',
    ['--build', dirname(ROLLCALL_BIN), '--seeds', '3', '02', '18', '19'], { cwd: ROOT, timeout: 600_000 });
  assert.match(stdout, /3 defects, 0 not found/);
});
