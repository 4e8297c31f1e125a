/**
 * Runs `rollcall fanout` for a test, with a listener for operators on a free loopback port. The process is ended by its
 * id.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { SOON_MS, within } from '../../e2e/support/client.mjs';
import { PEER_SECRET } from '../../e2e/support/ledger_server.mjs';
import { freePorts } from '../../e2e/support/redis.mjs';
import { ROLLCALL_BIN } from '../../e2e/support/server.mjs';

const { ROLLCALL_BIN: _ours, ...inherited } = process.env;
/** Tests measure its memory, so AddressSanitizer must not keep what is freed. */
const environment = { ...inherited, ASAN_OPTIONS: `${inherited.ASAN_OPTIONS ?? ''}:quarantine_size_mb=1` };

/**
 * Starts a fan-out process; it need not be ready when this returns.
 *
 * @param {{name: string, state: string, ledger: string, feed: string, settings?: object, workers?: number}} options
 */
export async function startFanout({ name, state, ledger, feed, settings = {}, workers = 1 }) {
  const [port] = await freePorts(1);
  const all = {
    'peer.secret': PEER_SECRET,
    'ops.listen': `127.0.0.1:${port}`,
    ...settings,
  };
  const set = Object.entries(all).flatMap(([key, value]) => ['--set', `${key}=${value}`]);
  const where = ['--state', state, '--ledger', ledger, '--feed', feed];
  const child = spawn(ROLLCALL_BIN, ['fanout', '--node-id', name, '--workers', String(workers), ...where, ...set], {
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const lines = createInterface({ input: child.stdout });
  await within(SOON_MS, Promise.race([once(lines, 'line'), once(child, 'exit')]), () => `start line; log: ${log}`);
  if (child.exitCode !== null) throw new Error(`rollcall fanout ended with ${child.exitCode}: ${log}`);
  return {
    name,
    url: `http://127.0.0.1:${port}/`,
    port,
    pid: child.pid,
    log: () => log,

    /** Ends the process; returns its exit code, or the signal that ended it. */
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, 'exit');
        child.kill(signal);
        await within(SOON_MS, exited, () => `end of the fan-out process; log: ${log}`);
      }
      return child.exitCode ?? child.signalCode;
    },
  };
}
